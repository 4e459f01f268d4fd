//! Sending the messages of one handler, in order, each until it is accepted or given up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::warn;
use windlass::testing::Environment;

use crate::config::WatchSpec;
use crate::handler::Handler;
use crate::ledger::Ticket;
use crate::notice::{Notice, Reason};
use crate::report::Report;
use crate::transport::{SendError, Transport};

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LAST_DELAY: Duration = Duration::from_mins(1);

/// A message that waits.
pub(crate) struct Item {
    notice: Arc<Notice>,
    /// Dropped when this handler is done with it.
    _ticket: Arc<Ticket>,
    since: Instant,
}

/// The messages that wait for one handler.
#[derive(Default)]
pub(crate) struct Queue {
    items: Mutex<VecDeque<Item>>,
    wake: Notify,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message; returns whether the oldest was given up for it.
    fn push(&self, item: Item, limit: u32) -> bool {
        let mut items = self.lock();
        items.push_back(item);
        let over = items.len() > limit as usize;
        let oldest = if over { items.pop_front() } else { None };
        drop(items);
        self.wake.notify_one();
        oldest.is_some()
    }

    async fn next(&self) -> Item {
        loop {
            if let Some(item) = self.lock().pop_front() {
                return item;
            }
            self.wake.notified().await;
        }
    }
}

/// What sends the messages of one handler.
pub(crate) struct Worker {
    pub(crate) handler: Handler,
    pub(crate) queue: Arc<Queue>,
    pub(crate) config: Arc<WatchSpec>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) environment: Environment,
    pub(crate) report: Arc<Report>,
}

impl Worker {
    /// Takes a message to be sent.
    pub(crate) fn take(&self, notice: &Arc<Notice>, ticket: &Arc<Ticket>) {
        let item = Item {
            notice: Arc::clone(notice),
            _ticket: Arc::clone(ticket),
            since: Instant::now(),
        };
        if self.queue.push(item, self.config.delivery.queue.max(1)) {
            self.report
                .dropped(self.handler.name(), "too many messages wait");
        }
    }

    /// Sends until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let Some(group) = self.config.group.clone() else {
            loop {
                let item = self.queue.next().await;
                self.deliver(&item.notice, item.since).await;
            }
        };
        let interval = Duration::from_secs(group.seconds.max(1));
        let (mut ends, mut sent) = (Instant::now(), 0);
        loop {
            let item = self.queue.next().await;
            if Instant::now() >= ends {
                (ends, sent) = (Instant::now() + interval, 0);
            }
            if sent < group.limit {
                sent += 1;
                self.deliver(&item.notice, item.since).await;
                continue;
            }
            let mut items = vec![item];
            let due = self
                .environment
                .activity
                .due(ends, "kubewatch: group of messages");
            while let Ok(item) = timeout_at(ends, self.queue.next()).await {
                items.push(item);
            }
            drop(due);
            let notice = match items.as_slice() {
                [only] => Arc::clone(&only.notice),
                _ => Arc::new(summary(&items, group.seconds)),
            };
            self.deliver(&notice, items[0].since).await;
        }
    }

    /// Sends a message until it is accepted, or given up.
    async fn deliver(&self, notice: &Notice, since: Instant) {
        let limit = Duration::from_secs(self.config.delivery.seconds);
        let name = self.handler.name();
        let mut delay = FIRST_DELAY;
        loop {
            let now = self.environment.clock.now();
            let busy = self.environment.activity.busy("kubewatch: message");
            let sent = self
                .transport
                .send(&self.handler.outgoing(notice, now))
                .await;
            drop(busy);
            let error = match sent {
                Ok(()) => return self.report.sent(name),
                Err(error) => error,
            };
            warn!(handler = name, %error, "message not sent");
            self.report.failing(name, &error.to_string());
            if matches!(error, SendError::Refused(_)) {
                return self.report.dropped(name, "refused");
            }
            let at = Instant::now() + delay;
            if at.duration_since(since) > limit {
                return self.report.dropped(name, "not accepted in time");
            }
            let planned = self.environment.activity.planned(at);
            sleep_until(at).await;
            drop(planned);
            delay = (delay * 2).min(LAST_DELAY);
        }
    }
}

/// One message for many.
fn summary(items: &[Item], seconds: u64) -> Notice {
    let mut counts: BTreeMap<(&str, Reason), usize> = BTreeMap::new();
    for item in items {
        let what = (item.notice.kind.as_str(), item.notice.reason);
        *counts.entry(what).or_default() += 1;
    }
    let lines = counts.iter();
    let lines = lines.map(|((kind, reason), count)| format!("`{count}` `{kind}` `{reason}`"));
    let lines: Vec<String> = lines.collect();
    let first = &items[0].notice;
    Notice {
        kind: "Group".to_owned(),
        api_version: String::new(),
        namespace: String::new(),
        name: String::new(),
        reason: items
            .iter()
            .map(|item| item.notice.reason)
            .max()
            .unwrap_or(Reason::Updated),
        id: format!("{}-{}", first.id, items.len()),
        object: None,
        old: None,
        text: Some(format!(
            "`{}` more changes within {seconds} seconds:\n{}",
            items.len(),
            lines.join("\n")
        )),
    }
}
