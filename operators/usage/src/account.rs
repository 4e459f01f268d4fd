//! The account of a report: what was used up so far, and what is being used.
//!
//! Amounts are integers (thousandths of a CPU and bytes, times milliseconds), so nothing is lost by
//! adding them up. The account is stored each time something begins, changes or ends; between these it
//! follows from the time. So a restart loses nothing: what is there is in the stored account since it
//! began. Of what went while the operator was down only the latest possible end is known; it is counted
//! to that, and the row says for how long that is an estimate.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::item::{Amount, Item};

/// The account of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Account {
    /// When counting begins.
    pub(crate) start: i64,
    /// When it ends.
    pub(crate) end: i64,
    /// Up to when the account is known to be right.
    pub(crate) known: i64,
    /// What was used up.
    pub(crate) rows: BTreeMap<String, Row>,
    /// What is being used, by uid.
    pub(crate) open: BTreeMap<String, Open>,
    /// What is over and in its row, by uid, as long as it is there.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) done: BTreeSet<String>,
    /// When use was last looked at.
    pub(crate) sampled: Option<i64>,
    /// The `ConfigMaps` with results, the last one first: here and not only in the status, so that
    /// none is forgotten when the operator is killed before it has written that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<String>,
    /// Whether all results are there.
    pub(crate) over: bool,
}

/// What a row used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Row {
    /// Thousandths of a CPU times milliseconds.
    pub(crate) cpu: u128,
    /// Bytes times milliseconds.
    pub(crate) memory: u128,
    /// Bytes times milliseconds.
    pub(crate) volume: u128,
    /// The same of use.
    pub(crate) used_cpu: u128,
    pub(crate) used_memory: u128,
    /// Milliseconds of pods and claims that may have been gone.
    pub(crate) estimated: u128,
}

/// Something that is being used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Open {
    row: String,
    amount: Amount,
    /// Up to when it is in the row.
    from: i64,
    /// What it used when that was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Amount>,
}

impl Account {
    pub(crate) fn new(start: i64, end: i64) -> Self {
        Self {
            start,
            end,
            known: start,
            ..Self::default()
        }
    }

    fn row(&mut self, name: &str) -> &mut Row {
        self.rows.entry(name.to_owned()).or_default()
    }

    /// Adds what something requested between two times, as far as they are in the report's.
    fn add(&mut self, row: &str, amount: Amount, from: i64, until: i64) {
        let (from, until) = (from.max(self.start), until.min(self.end));
        let Ok(time @ 1..) = u128::try_from(until.saturating_sub(from)) else {
            return;
        };
        let row = self.row(row);
        row.cpu += u128::from(amount.cpu) * time;
        row.memory += u128::from(amount.memory) * time;
        row.volume += u128::from(amount.volume) * time;
    }

    /// Takes in what there is now. `was_down` says that the operator has not seen what happened since
    /// the account was last known to be right. Returns whether the account has to be stored.
    pub(crate) fn observe(&mut self, items: &[Item], now: i64, was_down: bool) -> bool {
        let mut changed = was_down;
        let present: BTreeMap<&str, &Item> =
            items.iter().map(|item| (item.uid.as_str(), item)).collect();
        for (uid, entry) in std::mem::take(&mut self.open) {
            let item = present.get(uid.as_str());
            let same = item.is_some_and(|item| {
                item.until.is_none() && item.row == entry.row && item.amount == entry.amount
            });
            if same {
                self.open.insert(uid, entry);
                continue;
            }
            changed = true;
            let end = item.and_then(|item| item.until).unwrap_or(now);
            self.add(&entry.row, entry.amount, entry.from, end);
            match item {
                None if was_down => {
                    let since = self.known.max(self.start).max(entry.from);
                    let doubtful = end.min(self.end).saturating_sub(since);
                    self.row(&entry.row).estimated += u128::try_from(doubtful).unwrap_or_default();
                }
                None => {}
                Some(item) if item.until.is_none() => self.open(item, now),
                Some(_) => drop(self.done.insert(uid)),
            }
        }
        self.done.retain(|uid| present.contains_key(uid.as_str()));
        for item in items {
            if self.open.contains_key(&item.uid) || self.done.contains(&item.uid) {
                continue;
            }
            changed = true;
            match item.until {
                None => self.open(item, item.from),
                // It began and ended while nothing was seen.
                Some(until) => {
                    self.done.insert(item.uid.clone());
                    self.add(&item.row, item.amount, item.from, until);
                }
            }
        }
        self.known = now.min(self.end);
        changed
    }

    fn open(&mut self, item: &Item, from: i64) {
        let entry = Open {
            row: item.row.clone(),
            amount: item.amount,
            from: from.max(self.start),
            used: None,
        };
        self.open.insert(item.uid.clone(), entry);
    }

    /// Takes in what pods use now, by uid: it counts from the last time it was looked at.
    pub(crate) fn sample(&mut self, used: &BTreeMap<String, Amount>, now: i64) {
        let last = self.sampled.replace(now);
        let mut added = Vec::new();
        for (uid, entry) in &mut self.open {
            let since = entry.from.max(last.unwrap_or(now)).max(self.start);
            let time = u128::try_from(now.min(self.end) - since).unwrap_or_default();
            let before = entry.used.take();
            entry.used = used.get(uid).copied();
            // Where a pod was looked at twice, the mean of both; else what is known.
            let (Some(one), Some(other)) = (before.or(entry.used), entry.used.or(before)) else {
                continue;
            };
            let mean = |a: u64, b: u64| (u128::from(a) + u128::from(b)) * time / 2;
            let sum = (mean(one.cpu, other.cpu), mean(one.memory, other.memory));
            added.push((entry.row.clone(), sum));
        }
        for (row, (cpu, memory)) in added {
            let row = self.row(&row);
            row.used_cpu += cpu;
            row.used_memory += memory;
        }
    }

    /// The rows as they are at the end of the report's time.
    pub(crate) fn close(&self) -> BTreeMap<String, Row> {
        let mut closed = self.clone();
        for entry in self.open.values() {
            closed.add(&entry.row, entry.amount, entry.from, self.end);
        }
        closed.rows
    }

    /// The account of the time after this one.
    pub(crate) fn next(&self, end: i64) -> Self {
        let mut next = Self::new(self.end, end);
        next.open.clone_from(&self.open);
        next.done.clone_from(&self.done);
        next.results.clone_from(&self.results);
        for entry in next.open.values_mut() {
            entry.from = entry.from.max(self.end);
        }
        next.sampled = self.sampled.map(|_| self.end);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(uid: &str, from: i64, until: Option<i64>) -> Item {
        let amount = Amount {
            cpu: 1,
            memory: 10,
            volume: 0,
        };
        Item {
            uid: uid.to_owned(),
            pod: None,
            row: "row".to_owned(),
            amount,
            from,
            until,
        }
    }

    #[test]
    fn what_ends_is_counted_once_however_often_it_is_seen() {
        let mut account = Account::new(0, 1000);
        assert!(account.observe(&[item("a", 100, None)], 100, false));
        assert!(!account.observe(&[item("a", 100, None)], 150, false));
        assert!(account.observe(&[item("a", 100, Some(180))], 200, false));
        assert!(!account.observe(&[item("a", 100, Some(180))], 210, false));
        assert_eq!(account.close()["row"].cpu, 80);
        assert_eq!(account.close()["row"].memory, 800);
    }

    #[test]
    fn what_is_there_over_the_end_is_split_exactly() {
        let mut account = Account::new(0, 1000);
        account.observe(&[item("a", 900, None)], 900, false);
        let mut closing = account.clone();
        let items = [item("a", 900, Some(1300))];
        closing.observe(&items, 1500, false);
        let mut next = account.next(2000);
        next.observe(&items, 1500, false);
        assert_eq!(
            (closing.close()["row"].cpu, next.close()["row"].cpu),
            (100, 300)
        );
    }

    #[test]
    fn what_went_while_the_operator_was_down_is_counted_to_the_latest_end_and_said_so() {
        let mut account = Account::new(0, 1000);
        account.observe(&[item("a", 100, None)], 100, false);
        account.observe(&[], 400, true);
        let row = &account.close()["row"];
        assert_eq!((row.cpu, row.estimated), (300, 300));
    }

    #[test]
    fn use_is_the_mean_between_two_looks() {
        let mut account = Account::new(0, 1000);
        account.observe(&[item("a", 0, None)], 0, false);
        let used = |cpu| {
            let amount = Amount {
                cpu,
                ..Amount::default()
            };
            BTreeMap::from([("a".to_owned(), amount)])
        };
        account.sample(&used(10), 0);
        account.sample(&used(20), 100);
        assert_eq!(account.close()["row"].used_cpu, 1500);
    }
}
