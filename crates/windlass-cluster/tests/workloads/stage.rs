//! Where a scenario is played.

use std::path::Path;

use windlass_cluster::TestCluster;

use crate::real;
use crate::scene::{self, Scene};

/// The environment variable that names the kubeconfig of a real API server without controllers.
const REAL: &str = "WINDLASS_REAL";

/// Plays a scenario in a namespace of its own, whose name begins with `name`.
pub(crate) fn play(name: &str, scenario: impl AsyncFnOnce(&Scene)) {
    if let Some(kubeconfig) = std::env::var_os(REAL) {
        return real::play(Path::new(&kubeconfig), name, scenario);
    }
    windlass_cluster::private::run(|cluster: TestCluster| async move {
        cluster.node().remove_image(scene::BROKEN, "it is broken");
        let scene = Scene::open(cluster.client(), name).await;
        scenario(&scene).await;
        // Nothing goes on for ever.
        cluster.settle().await;
    });
}
