/** A test of an operator written with java-operator-sdk, on a cluster of its own. */
public final class NotesTest {
  public static void main(String[] args) throws Exception {
    long began = System.nanoTime();
    try (Cluster cluster = new Cluster()) {
      System.out.println("ok cluster in " + (System.nanoTime() - began) / 1_000_000 + " ms");
      try (var client = cluster.client()) {
        Fabric8.operator(client);
        System.out.println("ok reconciled");
      }
    }
    System.exit(0);
  }
}
