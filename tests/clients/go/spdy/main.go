// What operators and tools do to pods with client-go: commands, attaching and port-forwarding, each by
// SPDY, which is what NewSPDYExecutor speaks, and by WebSocket. It makes a pod, and ends with an error
// at the first thing that goes wrong.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

const (
	namespace = "default"
	name      = "streams"
	patience  = time.Minute
	// Serves a page, and repeats what it reads.
	program = `
import http.server, os, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"x" * 200000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer((os.environ.get("POD_IP", "0.0.0.0"), 18200), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    print("heard " + line.strip(), flush=True)
threading.Event().wait()
`
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fail("kubeconfig", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail("client", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	start(ctx, client)
	for _, protocol := range []string{"SPDY", "WebSocket"} {
		streams := streams{config: config, client: client, protocol: protocol}
		for what, try := range map[string]func(context.Context) error{
			"exec": streams.exec, "input": streams.input, "terminal": streams.terminal,
			"attach": streams.attach, "port-forward": streams.forward,
		} {
			if err := try(ctx); err != nil {
				fail(what+" by "+protocol, err)
			}
			fmt.Println("ok", what, "by", protocol)
		}
	}
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func start(ctx context.Context, client kubernetes.Interface) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "busybox", Stdin: true,
			Command: []string{"python3", "-c", program},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(18200)}}},
			Env: []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
		}}},
	}
	// Controllers give every namespace its account a moment after the start.
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		fail("waiting for the account", err)
	}
	if _, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		fail("creating the pod", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		// It answers once its probe says so.
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready, nil
	})
	if err != nil {
		fail("waiting for the pod", err)
	}
}

type streams struct {
	config   *rest.Config
	client   kubernetes.Interface
	protocol string
}

func (s streams) url(what string, options interface{}) *url.URL {
	request := s.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(name).SubResource(what)
	switch options := options.(type) {
	case *corev1.PodExecOptions:
		request = request.VersionedParams(options, scheme.ParameterCodec)
	case *corev1.PodAttachOptions:
		request = request.VersionedParams(options, scheme.ParameterCodec)
	}
	return request.URL()
}

func (s streams) executor(url *url.URL) (remotecommand.Executor, error) {
	if s.protocol == "SPDY" {
		return remotecommand.NewSPDYExecutor(s.config, "POST", url)
	}
	return remotecommand.NewWebSocketExecutor(s.config, "GET", url.String())
}

func (s streams) run(ctx context.Context, options *corev1.PodExecOptions, streams remotecommand.StreamOptions) error {
	executor, err := s.executor(s.url("exec", options))
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, streams)
}

// Both outputs, and the exit code.
func (s streams) exec(ctx context.Context) error {
	var out, errs bytes.Buffer
	command := []string{"sh", "-c", "echo out; echo err >&2; exit 3"}
	err := s.run(ctx, &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true},
		remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	var exit utilexec.CodeExitError
	if !errors.As(err, &exit) || exit.Code != 3 || out.String() != "out\n" || errs.String() != "err\n" {
		return fmt.Errorf("%q %q %w", out.String(), errs.String(), err)
	}
	err = s.run(ctx, &corev1.PodExecOptions{Command: []string{"no-such-program"}, Stdout: true},
		remotecommand.StreamOptions{Stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		return fmt.Errorf("a program that is not there: %w", err)
	}
	return nil
}

// A megabyte there and back, and the end of the input is heard.
func (s streams) input(ctx context.Context) error {
	much := bytes.Repeat([]byte("x"), 1<<20)
	var out bytes.Buffer
	err := s.run(ctx, &corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true},
		remotecommand.StreamOptions{Stdin: bytes.NewReader(much), Stdout: &out})
	if err != nil || !bytes.Equal(out.Bytes(), much) {
		return fmt.Errorf("%d bytes came back: %w", out.Len(), err)
	}
	return nil
}

type window struct {
	sizes chan remotecommand.TerminalSize
}

func (w window) Next() *remotecommand.TerminalSize {
	size, more := <-w.sizes
	if !more {
		return nil
	}
	return &size
}

// A terminal has the size it is given.
func (s streams) terminal(ctx context.Context) error {
	sizes := make(chan remotecommand.TerminalSize, 1)
	sizes <- remotecommand.TerminalSize{Width: 100, Height: 40}
	defer close(sizes)
	var out bytes.Buffer
	command := []string{"sh", "-c", `until test "$(stty size)" = "40 100"; do sleep 0.05; done; echo sized`}
	err := s.run(ctx, &corev1.PodExecOptions{Command: command, Stdin: true, Stdout: true, TTY: true},
		remotecommand.StreamOptions{Stdin: waiting{}, Stdout: &out, Tty: true, TerminalSizeQueue: window{sizes}})
	if err != nil || !strings.Contains(out.String(), "sized") {
		return fmt.Errorf("%q %w", out.String(), err)
	}
	return nil
}

// A keyboard on which nothing is typed.
type waiting struct{}

func (waiting) Read([]byte) (int, error) { select {} }

// What is said to the container's own program is answered by it.
func (s streams) attach(ctx context.Context) error {
	executor, err := s.executor(s.url("attach", &corev1.PodAttachOptions{Stdin: true, Stdout: true}))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	typed, keyboard := io.Pipe()
	screen, shown := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: typed, Stdout: shown})
	}()
	go fmt.Fprintln(keyboard, s.protocol)
	line := make([]byte, len("heard "+s.protocol+"\n"))
	if _, err := io.ReadFull(screen, line); err != nil || string(line) != "heard "+s.protocol+"\n" {
		return fmt.Errorf("%q %w", line, err)
	}
	cancel()
	<-done
	return nil
}

func (s streams) forward(ctx context.Context) error {
	url := s.url("portforward", nil)
	var dialer httpstream.Dialer
	if s.protocol == "SPDY" {
		transport, upgrader, err := spdy.RoundTripperFor(s.config)
		if err != nil {
			return err
		}
		dialer = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", url)
	} else {
		tunnel, err := portforward.NewSPDYOverWebsocketDialer(url, s.config)
		if err != nil {
			return err
		}
		dialer = tunnel
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{":18200"}, stop, ready, io.Discard, os.Stderr)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		return err
	case <-time.After(patience):
		return errors.New("the port is not ready")
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	for range 3 {
		request, _ := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local), nil)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || len(page) != 200000 {
			return fmt.Errorf("%d bytes: %w", len(page), err)
		}
	}
	close(stop)
	return <-done
}
