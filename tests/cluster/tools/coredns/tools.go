//go:build tools

// Package tools names the DNS server that the tests' node needs, so that go.mod pins it.
package tools

import _ "github.com/coredns/coredns"
