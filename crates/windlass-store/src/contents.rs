//! Everything that a store holds, for stores that start from there.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::compaction::Compaction;
use super::pending::State;
use super::{Inner, Key, Store, Stored, Table, TableName};

/// The objects of a store at one moment. Objects are shared, not copied.
#[derive(Debug)]
pub struct Contents {
    revision: u64,
    tables: Vec<(TableName, BTreeMap<Key, Arc<Stored>>)>,
}

impl Store {
    /// What the store holds, as the next write finds it.
    pub fn contents(&self) -> Contents {
        let inner = self.lock();
        let tables = inner.tables.iter();
        Contents {
            revision: inner.latest,
            tables: tables
                .map(|(name, table)| (name.clone(), table.objects.clone()))
                .collect(),
        }
    }

    /// A store in memory that holds these contents, and has no past.
    pub fn holding(contents: &Contents, compaction_interval: Duration) -> Self {
        let Contents { revision, tables } = contents;
        let table = |(name, objects): &(TableName, BTreeMap<Key, Arc<Stored>>)| {
            let mut table = Table::new(*revision);
            table.objects.clone_from(objects);
            (name.clone(), table)
        };
        let tables: HashMap<_, _> = tables.iter().map(table).collect();
        let inner = Inner {
            revision: *revision,
            latest: *revision,
            history_from: *revision,
            tables,
            ..Inner::default()
        };
        Self {
            state: Arc::new(State::with(inner)),
            durable: false,
            writer: None,
            compaction: Mutex::new(Compaction::every(compaction_interval)),
        }
    }
}
