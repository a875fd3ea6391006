// A name server for the Services of a cluster: CoreDNS with the plugins that this takes.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// CoreDNS's own list names plugins that are not built in here.
	dnsserver.Directives = []string{"bind", "ready", "log", "errors", "kubernetes"}
	coremain.Run()
}
