// A kube-scheduler with the coscheduling plugin, and no other of the module it comes from: those want another Kubernetes.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"

	// The plugin's arguments in a scheduler's configuration.
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(coscheduling.Name, coscheduling.New))))
}
