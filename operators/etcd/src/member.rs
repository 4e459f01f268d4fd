//! What members are called, and where they are found.
//!
//! A member's name is its pod's, its claim's and the first part of its DNS name; a name is used once
//! in the life of a cluster. So a member that etcd lists tells which pod it is, also before it has
//! started and has a name there: by its peer URL.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use windlass::hash_of;

use crate::etcd::Member;

/// Where members reach each other.
pub const PEER_PORT: i32 = 2380;
/// Where clients reach them.
pub const CLIENT_PORT: i32 = 2379;

/// How many letters make a member's name differ from others'.
const SUFFIX: usize = 10;

/// A cluster's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    /// Its own, and that of the Service that gives its members their DNS names.
    pub cluster: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The uid of its object: two clusters that have the same name after one another never have
    /// members of the same name, nor the same token.
    pub uid: &'a str,
}

impl Names<'_> {
    /// The name of the `serial`-th member that the cluster has ever had.
    pub fn member(&self, serial: i64) -> String {
        let mut suffix = hash_of(&(self.uid, self.cluster, serial));
        suffix.truncate(SUFFIX);
        format!("{}-{suffix}", self.cluster)
    }

    /// The DNS name of a member.
    pub fn host(&self, member: &str) -> String {
        format!("{member}.{}.{}.svc", self.cluster, self.namespace)
    }

    /// Where a member is reached by the others.
    pub fn peer_url(&self, member: &str) -> String {
        format!("http://{}:{PEER_PORT}", self.host(member))
    }

    /// Where a member is reached by clients in the cluster.
    pub fn client_url(&self, member: &str) -> String {
        format!("http://{}:{CLIENT_PORT}", self.host(member))
    }

    /// The id that etcd gives to a cluster that begins with this member: made from its peer URL and
    /// the token, which is the object's uid.
    pub fn cluster_id(&self, first: &str) -> u64 {
        let member = sha1(format!("{}{}", self.peer_url(first), self.uid).as_bytes());
        sha1(&member.to_be_bytes())
    }

    /// Which of our members this is; none if somebody else added it.
    pub fn of(&self, member: &Member) -> Option<String> {
        let after = format!(".{}.{}.svc:{PEER_PORT}", self.cluster, self.namespace);
        member.peer_urls.iter().find_map(|url| {
            let name = url.strip_prefix("http://")?.strip_suffix(&after)?;
            (!name.contains('.') && !name.is_empty()).then(|| name.to_owned())
        })
    }
}

/// The first bytes of a hash, as etcd makes ids of them.
fn sha1(bytes: &[u8]) -> u64 {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let first = digest.as_ref().iter().take(8);
    first.fold(0, |id, byte| id << 8 | u64::from(*byte))
}

/// An id as `etcdctl` prints it.
pub fn hex(id: u64) -> String {
    format!("{id:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'_> = Names {
        cluster: "example",
        namespace: "default",
        uid: "1",
    };

    #[test]
    fn a_member_is_known_by_its_peer_url() {
        let name = NAMES.member(1);
        let member = |url: String| Member {
            id: 1,
            name: String::new(),
            peer_urls: vec![url],
            client_urls: Vec::new(),
            learner: true,
        };
        assert_eq!(NAMES.of(&member(NAMES.peer_url(&name))), Some(name));
        assert_eq!(NAMES.of(&member("http://10.0.0.1:2380".to_owned())), None);
        let other = "http://a.b.example.default.svc:2380".to_owned();
        assert_eq!(NAMES.of(&member(other)), None);
    }

    #[test]
    fn names_are_never_used_again() {
        assert_ne!(NAMES.member(1), NAMES.member(2));
        let later = Names { uid: "2", ..NAMES };
        assert_ne!(NAMES.member(1), later.member(1));
        assert_eq!(NAMES.member(1).len(), "example-".len() + SUFFIX);
    }
}
