//! Which backups go.

use super::manifest::Manifest;

/// A backup that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The key of its data.
    pub(crate) key: String,
    pub(crate) manifest: Manifest,
}

/// The keys that go so that `most` of the backups of this uid stay: the oldest by sequence. The
/// newest stays whatever is asked for, and so does everything of others.
pub(crate) fn surplus(kept: &[Kept], uid: &str, most: Option<usize>) -> Vec<String> {
    let Some(most) = most else {
        return Vec::new();
    };
    let mut own: Vec<&Kept> = kept
        .iter()
        .filter(|one| one.manifest.backup_uid == uid)
        .collect();
    own.sort_by_key(|one| std::cmp::Reverse(one.manifest.sequence));
    let surplus = own.into_iter().skip(most.max(1));
    surplus.map(|one| one.key.clone()).collect()
}

/// The sequence of the next backup.
pub(crate) fn next_sequence(kept: &[Kept]) -> i64 {
    let newest = kept.iter().map(|one| one.manifest.sequence).max();
    newest.unwrap_or(0).saturating_add(1)
}

/// Whether a key under a path is one of the backups that are taken there again and again:
/// `<path>_v<revision>_<time>`.
pub(crate) fn is_periodic(path: &str, key: &str) -> bool {
    let rest = key
        .strip_prefix(path)
        .and_then(|rest| rest.strip_prefix("_v"));
    let Some((revision, time)) = rest.and_then(|rest| rest.split_once('_')) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let dated = time
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"-:T".contains(&byte));
    digits(revision) && dated && time.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(sequence: i64, uid: &str) -> Kept {
        Kept {
            key: format!("etcd_v{}_2026-01-01-00:00:00", sequence * 10),
            manifest: Manifest {
                format: Manifest::FORMAT,
                sha256: String::new(),
                bytes: 0,
                revision: sequence * 10,
                compact_revision: 0,
                etcd_version: String::new(),
                cluster_id: String::new(),
                auth_enabled: false,
                sequence,
                backup_uid: uid.to_owned(),
            },
        }
    }

    proptest! {
        #[test]
        fn newest_of_each_stays_and_others_are_not_touched(
            sequences in prop::collection::btree_map(1_i64..200, prop::bool::ANY, 0..40),
            most in prop::option::of(0_usize..20),
        ) {
            let all: Vec<Kept> = sequences
                .iter()
                .map(|(sequence, ours)| kept(*sequence, if *ours { "ours" } else { "other" }))
                .collect();
            let gone = surplus(&all, "ours", most);
            let (gone, left): (Vec<&Kept>, Vec<&Kept>) =
                all.iter().partition(|one| gone.contains(&one.key));
            prop_assert!(gone.iter().all(|one| one.manifest.backup_uid == "ours"));
            let own = left.iter().filter(|one| one.manifest.backup_uid == "ours");
            let oldest_left = own.clone().map(|one| one.manifest.sequence).min();
            // What goes is older than all that stays.
            let newest_gone = gone.iter().map(|one| one.manifest.sequence).max();
            if let Some(newest_gone) = newest_gone {
                prop_assert!(oldest_left.is_some_and(|oldest| oldest > newest_gone));
                prop_assert_eq!(own.count(), most.unwrap_or(usize::MAX).max(1));
            }
        }
    }

    #[test]
    fn order_is_by_number_over_99_to_100() {
        let all: Vec<Kept> = (98..=101).map(|sequence| kept(sequence, "u")).collect();
        assert_eq!(
            surplus(&all, "u", Some(2)),
            [all[1].key.clone(), all[0].key.clone()]
        );
        assert_eq!(next_sequence(&all), 102);
    }

    #[test]
    fn neighbours_with_the_same_prefix_are_not_backups_of_the_path() {
        assert!(is_periodic("a/etcd", "a/etcd_v12_2026-01-01-00:00:00"));
        for other in [
            "a/etcd",
            "a/etcd2_v1_2026",
            "a/etcd_vx_2026",
            "a/etcd_v1",
            "a/etcd_v1_x",
        ] {
            assert!(!is_periodic("a/etcd", other), "{other}");
        }
    }
}
