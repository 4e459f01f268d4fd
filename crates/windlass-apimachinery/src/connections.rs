//! The connections of a server, by how long ago each began its latest request.
//!
//! There are only so many, and what can connect can keep a connection for as long as it wishes to:
//! by answers to pings, or by a body that arrives byte by byte. So a new connection never waits for
//! an old one to end: among those that are counted together, the one whose latest request is the
//! longest ago is closed for it. One that is in use has begun a request lately.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The open connections of one server, counted by `K`: the addresses of clients, or nothing. Clones
/// are the same.
#[derive(Clone, Debug)]
pub struct Connections<K: Ord + Clone> {
    open: Arc<Mutex<Open<K>>>,
    most: usize,
}

#[derive(Debug)]
struct Open<K> {
    next: u64,
    /// What closes each connection, the one that has begun nothing for the longest time first.
    by_use: BTreeMap<K, BTreeMap<u64, Arc<Notify>>>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub struct Place<K: Ord + Clone> {
    connections: Connections<K>,
    of: K,
    number: Mutex<u64>,
    close: Arc<Notify>,
}

impl<K: Ord + Clone> Connections<K> {
    /// Of each `K` there may be so many, and one at least.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let open = Open {
            next: 0,
            by_use: BTreeMap::new(),
        };
        Self {
            open: Arc::new(Mutex::new(open)),
            most: most.max(1),
        }
    }

    /// One more; where there are as many as there may be, an old one is closed.
    #[must_use]
    pub fn add(&self, of: K) -> Place<K> {
        let mut open = self.lock();
        while open.by_use.get(&of).is_some_and(|of| of.len() >= self.most) {
            open.close_oldest(&of);
        }
        let close = Arc::new(Notify::new());
        let number = open.insert(of.clone(), Arc::clone(&close));
        drop(open);
        Place {
            connections: self.clone(),
            of,
            number: Mutex::new(number),
            close,
        }
    }

    /// Closes the connection that has begun nothing for the longest time, if there is one.
    pub fn close_oldest(&self) {
        let mut open = self.lock();
        let first = |(of, numbers): (&K, &BTreeMap<u64, _>)| {
            let (number, _) = numbers.first_key_value()?;
            Some((*number, of.clone()))
        };
        if let Some((_, of)) = open.by_use.iter().filter_map(first).min() {
            open.close_oldest(&of);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open<K>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Open<K> {
    fn insert(&mut self, of: K, close: Arc<Notify>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.by_use.entry(of).or_default().insert(number, close);
        number
    }

    fn remove(&mut self, of: &K, number: u64) -> Option<Arc<Notify>> {
        let numbers = self.by_use.get_mut(of)?;
        let close = numbers.remove(&number);
        if numbers.is_empty() {
            self.by_use.remove(of);
        }
        close
    }

    fn close_oldest(&mut self, of: &K) {
        let numbers = self.by_use.get(of);
        if let Some(number) = numbers.and_then(|of| of.keys().next().copied())
            && let Some(close) = self.remove(of, number)
        {
            close.notify_one();
        }
    }
}

impl<K: Ord + Clone> Place<K> {
    /// A request begins: of all connections this is the one used last.
    pub fn is_used(&self) {
        let mut number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = self.connections.lock();
        // One that is to be closed is not counted any more.
        if let Some(close) = open.remove(&self.of, *number) {
            *number = open.insert(self.of.clone(), close);
        }
    }

    /// Waits until the connection must be closed.
    pub async fn closed(&self) {
        self.close.notified().await;
    }
}

impl<K: Ord + Clone> Drop for Place<K> {
    fn drop(&mut self) {
        let number = *self.number.lock().unwrap_or_else(PoisonError::into_inner);
        self.connections.lock().remove(&self.of, number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_closed(place: &Place<&str>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(place.closed()).poll(&mut context).is_ready()
    }

    #[test]
    fn connection_used_the_longest_ago_is_closed_for_a_new_one() {
        let connections = Connections::new(2);
        let (first, second) = (connections.add("a"), connections.add("a"));
        first.is_used();
        let (third, other) = (connections.add("a"), connections.add("b"));
        assert!(is_closed(&second), "first was used after it");
        assert!(![&first, &third, &other].into_iter().any(is_closed));
        // What is closed counts no more, whatever it still does.
        second.is_used();
        drop((second, third));
        let fourth = connections.add("a");
        assert!(![&first, &fourth, &other].into_iter().any(is_closed));
        connections.close_oldest();
        assert!(is_closed(&first) && !is_closed(&other) && !is_closed(&fourth));
        drop((first, fourth, other));
        assert!(connections.lock().by_use.is_empty(), "none is remembered");
    }
}
