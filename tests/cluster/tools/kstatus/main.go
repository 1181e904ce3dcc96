// Command kstatus reads JSON objects and writes what kstatus says of each, a line an object.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	decoder := json.NewDecoder(os.Stdin)
	for decoder.More() {
		found := &unstructured.Unstructured{}
		if err := decoder.Decode(found); err != nil {
			panic(err)
		}
		result, err := status.Compute(found)
		if err != nil {
			panic(err)
		}
		fmt.Println(result.Status)
	}
}
