// A client of TrainJobs from before they had a deadline or a TTL: it reads one through the types of that time, changes
// something, and writes the whole object back, as controllers do. What those types do not know is lost on the way.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	trainer "github.com/kubeflow/trainer/v2/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = time.Minute

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the file with the address and the credentials")
	namespace := flag.String("namespace", "default", "the namespace of the TrainJob")
	suspend := flag.String("suspend", "", "true or false: what spec.suspend is set to")
	label := flag.String("label", "", "KEY=VALUE: a label that is set")
	flag.Parse()
	if err := update(*kubeconfig, *namespace, flag.Arg(0), *suspend, *label); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func update(kubeconfig, namespace, name, suspend, label string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{})
	client, err := trainer.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	jobs := client.TrainerV1alpha1().TrainJobs(namespace)
	job, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if suspend != "" {
		value, err := strconv.ParseBool(suspend)
		if err != nil {
			return err
		}
		job.Spec.Suspend = &value
	}
	if key, value, ok := strings.Cut(label, "="); ok {
		if job.Labels == nil {
			job.Labels = map[string]string{}
		}
		job.Labels[key] = value
	}
	_, err = jobs.Update(ctx, job, metav1.UpdateOptions{})
	return err
}
