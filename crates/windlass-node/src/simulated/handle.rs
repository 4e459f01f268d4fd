//! What a test can do to a simulated node.

use std::sync::Arc;

use super::Delays;
use super::container::Command;
use super::runtime::{SimulatedPod, SimulatedRuntime};
use crate::fault::Faults;
use crate::pod::Eviction;
use crate::runtime::{Report, Reports};

/// A simulated node, in the hands of a test. Clones are the same node.
#[derive(Debug, Clone)]
pub struct SimulatedNode {
    runtime: Arc<SimulatedRuntime>,
    faults: Faults,
}

/// What should have been done to something that does not run on the node.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot {verb} {object}: it does not run on the simulated node")]
pub struct NotRunning {
    verb: &'static str,
    object: String,
}

impl SimulatedNode {
    pub(crate) fn new(delays: Delays) -> Self {
        Self {
            runtime: Arc::new(SimulatedRuntime::new(delays)),
            faults: Faults::default(),
        }
    }

    pub(crate) fn faults(&self) -> Faults {
        self.faults.clone()
    }

    pub(crate) fn runtime(&self) -> Arc<SimulatedRuntime> {
        self.runtime.clone()
    }

    /// Changes how long things take, for containers started from now on.
    pub fn set_delays(&self, delays: Delays) {
        self.runtime.lock().delays = delays;
    }

    /// Lets one container end now, as if its process had ended with this exit code.
    pub fn crash(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        exit_code: i32,
    ) -> Result<(), NotRunning> {
        self.command("crash", namespace, pod, container, Command::Exit(exit_code))
    }

    /// Lets one container end now, as if its process had ended with this exit code and left this
    /// termination message.
    pub fn crash_with_message(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        exit_code: i32,
        message: &str,
    ) -> Result<(), NotRunning> {
        let crash = Command::Crash(exit_code, message.to_owned());
        self.command("crash", namespace, pod, container, crash)
    }

    /// Lets every container of a pod end now, successfully.
    pub fn stop(&self, namespace: &str, pod: &str) -> Result<(), NotRunning> {
        self.with_pod("stop", namespace, pod, |pod| {
            let mut stopped = false;
            for commands in pod.containers.values() {
                stopped |= commands.send(Command::Exit(0)).is_ok();
            }
            stopped
        })
    }

    /// Fails a pod for good, as an eviction does: its containers are stopped and its phase is
    /// Failed with this reason and message.
    pub fn fail(
        &self,
        namespace: &str,
        pod: &str,
        reason: &str,
        message: &str,
    ) -> Result<(), NotRunning> {
        let eviction = Eviction {
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        self.with_pod("fail", namespace, pod, |pod| {
            let evict = |reports: &Reports| reports.report(Report::Evicted(eviction));
            pod.reports.as_ref().map(evict).is_some()
        })
    }

    /// The node stops answering: it reports nothing any more, and its pods seem to go on as they
    /// were last heard of.
    pub fn stop_answering(&self) {
        self.faults.stop_answering();
    }

    /// The node answers again, and reports what has happened meanwhile.
    pub fn answer(&self) {
        self.faults.answer();
    }

    /// Kills one container, as the kernel does when memory is short: exit code 137.
    pub fn kill_container(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> Result<(), NotRunning> {
        self.command("kill", namespace, pod, container, Command::Exit(137))
    }

    /// Cuts a pod off the network: its containers whose readiness is probed over it are not ready
    /// any more.
    pub fn cut_network(&self, namespace: &str, pod: &str) -> Result<(), NotRunning> {
        self.set_network("cut the network of", namespace, pod, true)
    }

    /// Lets a pod back on the network.
    pub fn restore_network(&self, namespace: &str, pod: &str) -> Result<(), NotRunning> {
        self.set_network("restore the network of", namespace, pod, false)
    }

    fn set_network(
        &self,
        verb: &'static str,
        namespace: &str,
        pod: &str,
        cut: bool,
    ) -> Result<(), NotRunning> {
        self.with_pod(verb, namespace, pod, |pod| {
            for commands in pod.containers.values() {
                let _ = commands.send(Command::Cut(cut));
            }
            true
        })
    }

    /// Loses what a pod has written to its disk, and with it its containers: each ends with exit
    /// code 137.
    pub fn lose_disk(&self, namespace: &str, pod: &str) -> Result<(), NotRunning> {
        self.with_pod("lose the disk of", namespace, pod, |pod| {
            for commands in pod.containers.values() {
                let _ = commands.send(Command::Exit(137));
            }
            true
        })
    }

    /// Makes a running container ready or not, from now on.
    pub fn set_ready(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        ready: bool,
    ) -> Result<(), NotRunning> {
        self.command(
            "change readiness of",
            namespace,
            pod,
            container,
            Command::Ready(ready),
        )
    }

    /// Containers of this image cannot be started from now on: `ErrImagePull` with this message.
    pub fn remove_image(&self, image: &str, message: &str) {
        self.runtime
            .lock()
            .missing_images
            .insert(image.to_owned(), message.to_owned());
    }

    /// No container can be started from now on: `ErrImagePull` with this message.
    pub fn remove_every_image(&self, message: &str) {
        self.runtime.lock().no_images = Some(message.to_owned());
    }

    /// Containers of this image can be started again.
    pub fn restore_image(&self, image: &str) {
        self.runtime.lock().missing_images.remove(image);
    }

    fn command(
        &self,
        verb: &'static str,
        namespace: &str,
        pod: &str,
        container: &str,
        command: Command,
    ) -> Result<(), NotRunning> {
        self.with_pod(verb, namespace, pod, |pod| {
            let commands = pod.containers.get(container);
            commands.is_some_and(|commands| commands.send(command).is_ok())
        })
        .map_err(|error| NotRunning {
            object: format!("container {container} of {}", error.object),
            ..error
        })
    }

    fn with_pod(
        &self,
        verb: &'static str,
        namespace: &str,
        name: &str,
        act: impl FnOnce(&SimulatedPod) -> bool,
    ) -> Result<(), NotRunning> {
        let state = self.runtime.lock();
        let mut pods = state.pods.values();
        let found = pods.find(|pod| pod.namespace == namespace && pod.name == name);
        if found.is_some_and(act) {
            Ok(())
        } else {
            Err(NotRunning {
                verb,
                object: format!("pod {namespace}/{name}"),
            })
        }
    }
}

#[cfg(test)]
impl SimulatedNode {
    /// The runtime, begun in these surroundings.
    pub(crate) fn runtime_in(
        &self,
        surroundings: &windlass::testing::Environment,
    ) -> Arc<SimulatedRuntime> {
        self.runtime.surround(surroundings);
        self.runtime()
    }
}
