import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** A cluster for tests: it is there in a moment, and gone when it is closed. */
public final class Cluster implements AutoCloseable {
  private static final String WINDLASS = System.getenv().getOrDefault("WINDLASS", "windlass");
  private final Path folder;

  public Cluster() throws IOException, InterruptedException {
    folder = Files.createTempDirectory("windlass");
    windlass("up", "--in-memory", "--no-node", "--detach");
  }

  /** A client of its administrator. */
  public KubernetesClient client() {
    return new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(folder.resolve("kubeconfig").toFile())).build();
  }

  @Override
  public void close() throws IOException, InterruptedException {
    windlass("down", "--purge");
  }

  private void windlass(String... args) throws IOException, InterruptedException {
    var command = Stream.concat(Stream.of(WINDLASS), Stream.of(args));
    var at = List.of("--data-dir", folder.toString());
    var process = new ProcessBuilder(Stream.concat(command, at.stream()).toList()).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes());
    if (process.waitFor() != 0) {
      throw new IOException(String.join(" ", args) + ": " + said);
    }
  }
}
