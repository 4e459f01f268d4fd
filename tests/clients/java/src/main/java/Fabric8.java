import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.EnvVarBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.LocalPortForward;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * What people do with fabric8's client, and an operator written with java-operator-sdk on top of it.
 * The client finds the cluster as it always does, by KUBECONFIG. It makes a pod (none with PODS=0),
 * and ends with an error at the first thing that goes wrong.
 */
public final class Fabric8 {
  private static final String NAMESPACE = "default";
  private static final String NAME = "fabric8-streams";
  private static final String PROGRAM =
      """
      import http.server, os
      class Page(http.server.BaseHTTPRequestHandler):
          def do_GET(self):
              self.send_response(200)
              self.send_header("Content-Length", "5")
              self.end_headers()
              self.wfile.write(b"hello")
      http.server.ThreadingHTTPServer((os.environ.get("POD_IP", "0.0.0.0"), 18203), Page).serve_forever()
      """;

  public static final class NoteSpec {
    public String text;
  }

  public static final class NoteStatus {
    public String seen;
  }

  @Group("jo.example.com")
  @Version("v1")
  public static final class Note extends CustomResource<NoteSpec, NoteStatus> implements Namespaced {}

  @ControllerConfiguration
  public static final class NoteReconciler implements Reconciler<Note>, Cleaner<Note> {
    @Override
    public UpdateControl<Note> reconcile(Note note, Context<Note> context) {
      context.getClient().resource(map("note-" + name(note), note.getSpec().text)).serverSideApply();
      NoteStatus status = new NoteStatus();
      status.seen = note.getSpec().text;
      note.setStatus(status);
      return UpdateControl.patchStatus(note);
    }

    @Override
    public DeleteControl cleanup(Note note, Context<Note> context) {
      context.getClient().resource(map("gone-" + name(note), "")).create();
      return DeleteControl.defaultDelete();
    }

    private static String name(Note note) {
      return note.getMetadata().getName();
    }
  }

  private static ConfigMap map(String name, String text) {
    return new ConfigMapBuilder()
        .withNewMetadata().withNamespace(NAMESPACE).withName(name).endMetadata()
        .withData(Map.of("text", text))
        .build();
  }

  private static void expect(boolean condition, Object what) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }

  private static void until(String what, Callable<Boolean> happens) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    while (System.nanoTime() < deadline) {
      if (happens.call()) {
        return;
      }
      Thread.sleep(100);
    }
    throw new AssertionError(what + ": not within a minute");
  }

  private static void informer(KubernetesClient client) throws Exception {
    var seen = new ConcurrentLinkedQueue<String>();
    var informer = client.configMaps().inNamespace(NAMESPACE).inform(new ResourceEventHandler<ConfigMap>() {
      @Override
      public void onAdd(ConfigMap map) {
        seen.add("+" + map.getMetadata().getName());
      }

      @Override
      public void onUpdate(ConfigMap old, ConfigMap map) {
        seen.add("~" + map.getMetadata().getName());
      }

      @Override
      public void onDelete(ConfigMap map, boolean unknown) {
        seen.add("-" + map.getMetadata().getName());
      }
    });
    client.resource(map("watched", "1")).create();
    until("added", () -> seen.contains("+watched"));
    client.resource(map("watched", "2")).update();
    until("changed", () -> seen.contains("~watched"));
    client.resource(map("watched", "2")).delete();
    until("deleted", () -> seen.contains("-watched"));
    informer.close();
  }

  private static void pod(KubernetesClient client) throws Exception {
    Pod pod =
        new PodBuilder()
            .withNewMetadata().withNamespace(NAMESPACE).withName(NAME).endMetadata()
            .withNewSpec()
            .addNewContainer()
            .withName("main").withImage("busybox").withCommand("python3", "-c", PROGRAM)
            .withEnv(new EnvVarBuilder().withName("POD_IP").withNewValueFrom()
                .withNewFieldRef().withFieldPath("status.podIP").endFieldRef().endValueFrom().build())
            .endContainer()
            .endSpec()
            .build();
    until("an account", () -> client.serviceAccounts().inNamespace(NAMESPACE).withName("default").get() != null);
    client.resource(pod).create();
    client.pods().inNamespace(NAMESPACE).withName(NAME).waitUntilReady(1, TimeUnit.MINUTES);
  }

  private static void command(KubernetesClient client) throws Exception {
    var out = new ByteArrayOutputStream();
    try (ExecWatch watch =
        client.pods().inNamespace(NAMESPACE).withName(NAME).writingOutput(out).exec("sh", "-c", "echo hello; exit 3")) {
      int code = watch.exitCode().get(1, TimeUnit.MINUTES);
      expect(code == 3 && out.toString().equals("hello\n"), code + " " + out);
    }
  }

  private static void upload(KubernetesClient client) throws Exception {
    Path folder = Files.createTempDirectory("fabric8");
    Path from = Files.writeString(folder.resolve("from"), "x".repeat(1_000_000));
    Path to = folder.resolve("to");
    var pod = client.pods().inNamespace(NAMESPACE).withName(NAME);
    expect(pod.file(to.toString()).upload(from), "the file is uploaded");
    expect(Files.mismatch(from, to) == -1, "all of it");
    Path back = folder.resolve("back");
    expect(pod.file(to.toString()).copy(back), "the file is downloaded");
    expect(Files.mismatch(from, back) == -1, "all of it, again");
  }

  private static void forward(KubernetesClient client) throws Exception {
    try (LocalPortForward forward = client.pods().inNamespace(NAMESPACE).withName(NAME).portForward(18203)) {
      var page = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + forward.getLocalPort() + "/")).build();
      // A fresh pod may still be starting its server.
      until("a page", () -> {
        try {
          return HttpClient.newHttpClient().send(page, HttpResponse.BodyHandlers.ofString()).body().equals("hello");
        } catch (java.io.IOException error) {
          return false;
        }
      });
    }
  }

  private static void proxy(KubernetesClient client) {
    String page = client.raw("/api/v1/namespaces/" + NAMESPACE + "/pods/" + NAME + ":18203/proxy/");
    expect("hello".equals(page), page);
  }

  static void operator(KubernetesClient client) throws Exception {
    client.load(Fabric8.class.getResourceAsStream("/note.yaml")).create();
    until("a definition", () -> client.apiextensions().v1().customResourceDefinitions().withName("notes.jo.example.com").get()
        .getStatus().getConditions().stream().anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")));
    Operator operator = new Operator(overrider -> overrider.withKubernetesClient(client).withCloseClientOnStop(false));
    operator.register(new NoteReconciler());
    operator.start();
    Note note = new Note();
    note.getMetadata().setNamespace(NAMESPACE);
    note.getMetadata().setName("one");
    note.setSpec(new NoteSpec());
    note.getSpec().text = "first";
    client.resource(note).create();
    var maps = client.configMaps().inNamespace(NAMESPACE);
    until("reconciled", () -> maps.withName("note-one").get() != null);
    until("status", () -> {
      Note found = client.resources(Note.class).inNamespace(NAMESPACE).withName("one").get();
      return found.getStatus() != null && "first".equals(found.getStatus().seen);
    });
    client.resources(Note.class).inNamespace(NAMESPACE).withName("one").edit(found -> {
      found.getSpec().text = "second";
      return found;
    });
    until("changed", () -> maps.withName("note-one").get().getData().get("text").equals("second"));
    client.resources(Note.class).inNamespace(NAMESPACE).withName("one").delete();
    until("cleaned up", () -> maps.withName("gone-one").get() != null);
    operator.stop();
  }

  private interface Step {
    void run(KubernetesClient client) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      var steps = new java.util.LinkedHashMap<String, Step>();
      steps.put("informer", Fabric8::informer);
      steps.put("operator", Fabric8::operator);
      if (!"0".equals(System.getenv("PODS"))) {
        steps.put("pod", Fabric8::pod);
        steps.put("command", Fabric8::command);
        steps.put("upload", Fabric8::upload);
        steps.put("forward", Fabric8::forward);
        steps.put("proxy", Fabric8::proxy);
      }
      for (var step : steps.entrySet()) {
        step.getValue().run(client);
        System.out.println("ok " + step.getKey());
      }
    }
    System.exit(0);
  }
}
