//! What is explored: an operator that is given a kubeconfig, or a function that is given a client.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use kube::Client;
use tokio::task::JoinHandle;

use crate::process::Process;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
type Function = Arc<dyn Fn(Client) -> Work + Send + Sync>;

/// A command line with placeholders: `{kubeconfig}`, `{dir}` for a folder of the run, and `{port}`,
/// `{port2}` … for free ports.
#[derive(Clone, Debug)]
pub struct Template {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Environment variables beside those of this process; placeholders work there, too.
    pub env: Vec<(String, String)>,
}

/// An operator that can be started and killed.
#[derive(Clone)]
pub struct Subject(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Process(Template),
    Function(Function),
}

impl Subject {
    /// A program.
    pub fn process(template: Template) -> Self {
        Self(Kind::Process(template))
    }

    /// A function in this process. It must not leave tasks behind when its future is dropped: that
    /// is how it is killed.
    pub fn function<F, Fut>(function: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self(Kind::Function(Arc::new(move |client| {
            Box::pin(function(client))
        })))
    }

    /// Whether several can run at a time, and gain by it.
    pub(crate) fn can_overlap(&self) -> bool {
        matches!(&self.0, Kind::Process(template) if template.names_ports())
    }

    /// Whether it runs in a process of its own.
    pub(crate) fn is_process(&self) -> bool {
        matches!(self.0, Kind::Process(_))
    }
}

impl Template {
    /// Whether several can run at a time: one that listens on fixed ports cannot.
    pub fn names_ports(&self) -> bool {
        let words = self
            .words
            .iter()
            .chain(self.env.iter().map(|(_, value)| value));
        words.into_iter().any(|word| word.contains("{port"))
    }

    /// With the placeholders replaced.
    pub(crate) fn filled(&self, replace: impl Fn(&str) -> String) -> Vec<OsString> {
        self.words.iter().map(|word| replace(word).into()).collect()
    }
}

/// An operator that runs.
pub(crate) enum Life {
    Process(Box<Process>),
    Function(JoinHandle<()>),
}

impl Life {
    /// Why it ended by itself, if it has.
    pub(crate) async fn ended(&mut self) -> Option<String> {
        match self {
            Self::Process(process) => process.ended(),
            Self::Function(task) => {
                if !task.is_finished() {
                    return None;
                }
                match task.await {
                    Err(error) if error.is_panic() => {
                        let panic = error.into_panic();
                        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                        Some(format!("panicked: {}", text.unwrap_or_default()))
                    }
                    _ => Some("ended".to_owned()),
                }
            }
        }
    }

    pub(crate) async fn kill(&mut self) {
        match self {
            Self::Process(process) => process.kill().await,
            Self::Function(task) => {
                task.abort();
                let _ = task.await;
            }
        }
    }

    /// Stops it where it is: a function by nothing being answered.
    pub(crate) fn stop(&mut self) {
        if let Self::Process(process) = self {
            process.stop();
        }
    }

    /// Whether it uses a processor, as far as can be seen.
    pub(crate) fn is_busy(&mut self) -> bool {
        match self {
            Self::Process(process) => process.is_busy(),
            Self::Function(_) => false,
        }
    }
}
