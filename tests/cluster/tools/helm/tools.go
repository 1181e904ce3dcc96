//go:build tools

// Package tools names the Helm that tests of the chart need, so that go.mod pins it.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
