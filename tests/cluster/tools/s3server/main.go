// Command s3server serves folders as buckets, by versitygw, until it is ended.
//
// It is versitygw's own S3 without its other stores, its tests and its command line, which take as long to build again.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if len(os.Args) != 6 {
		fail("usage: s3server HOST:PORT BUCKETS METADATA ACCESS_KEY SECRET_KEY")
	}
	address, buckets, metadata := os.Args[1], os.Args[2], os.Args[3]
	// Beside the objects, and not in extended attributes, which some of a machine's folders do not have.
	storer, err := meta.NewSideCar(metadata)
	if err != nil {
		fail(err)
	}
	files, err := posix.New(buckets, storer, posix.PosixOpts{SideCarDir: metadata, Concurrency: 64})
	if err != nil {
		fail(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err = embedgw.RunVersityGW(ended, files, &embedgw.Config{
		RootUserAccess:    os.Args[4],
		RootUserSecret:    os.Args[5],
		Ports:             []string{address},
		MaxConnections:    1000,
		MaxRequests:       1000,
		MultipartMaxParts: 10000,
		KeepAlive:         true,
		Quiet:             true,
		HealthPath:        "/healthz",
	})
	if err != nil && ended.Err() == nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
