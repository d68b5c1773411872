package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
)

const (
	sweepers = 8
	patience = 30 * time.Second
)

// sweep removes every pod that the container runtime at os.Args[1] knows, as the kubelet would remove a pod that the
// API server no longer has: containers killed, network torn down, mounts gone. For stopping a node, and for starting
// one after a crash.
func sweep() error {
	ctx := context.Background()
	runtime, err := connect(ctx, os.Args[1])
	if err != nil {
		return err
	}
	sandboxes, err := runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		return err
	}
	work := make(chan string)
	failed := make(chan error, len(sandboxes))
	var group sync.WaitGroup
	for range sweepers {
		group.Go(func() {
			for id := range work {
				if err := remove(ctx, runtime, id); err != nil {
					failed <- fmt.Errorf("pod sandbox %s: %w", id, err)
				}
			}
		})
	}
	for _, sandbox := range sandboxes {
		work <- sandbox.Id
	}
	close(work)
	group.Wait()
	close(failed)
	for err := range failed {
		return err
	}
	fmt.Println(len(sandboxes))
	return nil
}

// connect waits until the runtime serves: after a crash it looks at all it finds of its former life first.
func connect(ctx context.Context, endpoint string) (cri.RuntimeService, error) {
	deadline := time.Now().Add(patience)
	for {
		runtime, err := remote.NewRemoteRuntimeService(ctx, endpoint, patience, nil, false)
		if err == nil || time.Now().After(deadline) {
			return runtime, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func remove(ctx context.Context, runtime cri.RuntimeService, id string) error {
	containers, err := runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{PodSandboxId: id})
	if err != nil {
		return err
	}
	for _, container := range containers {
		if err := runtime.StopContainer(ctx, container.Id, 0); err != nil {
			return err
		}
	}
	if err := runtime.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	return runtime.RemovePodSandbox(ctx, id)
}
