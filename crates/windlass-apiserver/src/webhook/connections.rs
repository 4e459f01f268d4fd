//! Connections to webhooks that are kept for the next call.
//!
//! A webhook is called for every write it is about, and to greet it each time costs more than the
//! call. A connection that has answered is kept for a while; one that the other side has closed is
//! let go. What is kept is told apart by where it leads, whom it trusts and by which name.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use super::transport::WebhookCall;

/// How long a connection is kept that nobody uses.
const KEPT_FOR: Duration = Duration::from_secs(90);
/// How many are kept for one place.
const MOST: usize = 25;
/// For how many places connections are kept.
const PLACES: usize = 128;

/// A connection on which requests can be sent.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// Where a connection leads, the name its certificate is for, and who vouches for it.
type Place = (String, u16, String, Vec<u8>);

/// The connections that are kept.
#[derive(Default)]
pub(super) struct Connections {
    idle: Mutex<BTreeMap<Place, Vec<(Instant, Sender)>>>,
}

fn place(call: &WebhookCall) -> Place {
    let (host, port) = call.address.clone();
    (host, port, call.server_name.clone(), call.ca_bundle.clone())
}

impl Connections {
    /// One that was used last most recently, if there is one that still stands.
    pub(super) fn take(&self, call: &WebhookCall) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.get_mut(&place(call))?;
        let now = Instant::now();
        kept.retain(|(since, sender)| !sender.is_closed() && now - *since < KEPT_FOR);
        kept.pop().map(|(_, sender)| sender)
    }

    /// Keeps a connection whose answer was read to the end.
    pub(super) fn keep(&self, call: &WebhookCall, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place(call);
        if !idle.contains_key(&place) && idle.len() >= PLACES {
            idle.clear();
        }
        let kept = idle.entry(place).or_default();
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push((Instant::now(), sender));
    }
}
