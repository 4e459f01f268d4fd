//! Background tasks of an operator.

use tokio_util::sync::CancellationToken;

use crate::Environment;

/// What a background task is given.
#[derive(Clone)]
pub struct TaskContext {
    /// The client, with the operator's identity.
    pub client: kube::Client,
    /// Clock, randomness and activity.
    pub environment: Environment,
    /// Cancelled when the operator stops; a task should end soon after.
    pub stopping: CancellationToken,
}
