import io.kubernetes.client.Exec;
import io.kubernetes.client.PortForward;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1EnvVar;
import io.kubernetes.client.openapi.models.V1EnvVarSource;
import io.kubernetes.client.openapi.models.V1ObjectFieldSelector;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.util.CallGeneratorParams;
import io.kubernetes.client.util.Config;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * What people do with Kubernetes' own Java client. It makes a pod (none with PODS=0), and ends with an
 * error at the first thing that goes wrong.
 */
public final class ClientJava {
  private static final String NAMESPACE = "default";
  private static final String NAME = "client-java-streams";
  private static final String PROGRAM =
      """
      import os, socketserver
      class Echo(socketserver.StreamRequestHandler):
          def handle(self):
              line = self.rfile.readline()
              if line.startswith(b"GET "):
                  self.wfile.write(b"HTTP/1.0 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\n")
              self.wfile.write(b"heard " + line)
      socketserver.ThreadingTCPServer((os.environ.get("POD_IP", "0.0.0.0"), 18204), Echo).serve_forever()
      """;

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

  private static void objects(CoreV1Api core) throws ApiException {
    V1ConfigMap map = new V1ConfigMap().metadata(new V1ObjectMeta().name("client-java")).data(Map.of("a", "1"));
    V1ConfigMap made = core.createNamespacedConfigMap(NAMESPACE, map).execute();
    made.setData(Map.of("a", "2"));
    V1ConfigMap replaced = core.replaceNamespacedConfigMap("client-java", NAMESPACE, made).execute();
    expect(replaced.getData().get("a").equals("2"), replaced);
    try {
      core.createNamespacedConfigMap(NAMESPACE, map).execute();
      throw new AssertionError("a second one is made");
    } catch (ApiException error) {
      expect(error.getCode() == 409, error.getCode());
    }
  }

  private static void informer(CoreV1Api core, ApiClient client) throws Exception {
    var factory = new SharedInformerFactory(client);
    var informer =
        factory.sharedIndexInformerFor(
            (CallGeneratorParams params) ->
                core.listNamespacedConfigMap(NAMESPACE)
                    .resourceVersion(params.resourceVersion)
                    .timeoutSeconds(params.timeoutSeconds)
                    .watch(params.watch)
                    .buildCall(null),
            V1ConfigMap.class,
            V1ConfigMapList.class);
    var seen = new ConcurrentLinkedQueue<String>();
    informer.addEventHandler(
        new ResourceEventHandler<>() {
          @Override
          public void onAdd(V1ConfigMap map) {
            seen.add(map.getMetadata().getName());
          }

          @Override
          public void onUpdate(V1ConfigMap old, V1ConfigMap map) {}

          @Override
          public void onDelete(V1ConfigMap map, boolean unknown) {}
        });
    factory.startAllRegisteredInformers();
    core.createNamespacedConfigMap(NAMESPACE, new V1ConfigMap().metadata(new V1ObjectMeta().name("watched-by-java"))).execute();
    until("added", () -> seen.contains("watched-by-java"));
    factory.stopAllRegisteredInformers();
  }

  private static void pod(CoreV1Api core) throws Exception {
    var address = new V1EnvVar().name("POD_IP").valueFrom(new V1EnvVarSource().fieldRef(new V1ObjectFieldSelector().fieldPath("status.podIP")));
    var container = new V1Container().name("main").image("busybox").command(List.of("python3", "-c", PROGRAM)).env(List.of(address));
    until("an account", () -> core.listNamespacedServiceAccount(NAMESPACE).execute().getItems().stream().anyMatch(a -> a.getMetadata().getName().equals("default")));
    core.createNamespacedPod(NAMESPACE, new V1Pod().metadata(new V1ObjectMeta().name(NAME)).spec(new V1PodSpec().containers(List.of(container)))).execute();
    until("a running pod", () -> "Running".equals(core.readNamespacedPod(NAME, NAMESPACE).execute().getStatus().getPhase()));
  }

  private static void command(ApiClient client) throws Exception {
    Process process = new Exec(client).exec(NAMESPACE, NAME, new String[] {"sh", "-c", "echo hello; exit 3"}, false, false);
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    expect(process.waitFor() == 3 && out.equals("hello\n"), process.exitValue() + " " + out);
  }

  private static void forward(ApiClient client) throws Exception {
    // A fresh pod may still be starting its server.
    until("an echo", () -> {
      var forwarded = new PortForward(client).forward(NAMESPACE, NAME, List.of(18204));
      try {
        OutputStream out = forwarded.getOutboundStream(18204);
        out.write("you\n".getBytes(StandardCharsets.UTF_8));
        out.flush();
        byte[] back = forwarded.getInputStream(18204).readNBytes(10);
        return new String(back, StandardCharsets.UTF_8).equals("heard you\n");
      } catch (IOException | IllegalStateException closed) {
        return false;
      }
    });
  }

  private static void proxy(CoreV1Api core) throws ApiException {
    String page = core.connectGetNamespacedPodProxyWithPath(NAME + ":18204", NAMESPACE, "page").execute();
    expect(page.startsWith("heard GET /page "), page);
  }

  public static void main(String[] args) throws Exception {
    ApiClient client = Config.defaultClient();
    client.setReadTimeout(0);
    CoreV1Api core = new CoreV1Api(client);
    objects(core);
    System.out.println("ok objects");
    informer(core, client);
    System.out.println("ok informer");
    if (!"0".equals(System.getenv("PODS"))) {
      pod(core);
      System.out.println("ok pod");
      command(client);
      System.out.println("ok command");
      forward(client);
      System.out.println("ok forward");
      proxy(core);
      System.out.println("ok proxy");
    }
    System.exit(0);
  }
}
