//! What is due next for the certificate: a pure function.

use jiff::Timestamp;

use super::issue::{Kept, names_of, validity};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A CA and a certificate.
    Issue,
    /// The certificate again.
    Renew,
    /// The next CA, to be published.
    Introduce,
    /// The next CA takes over.
    Promote,
    /// Nothing until then.
    Nothing(Timestamp),
}

/// Decides what is due. `published` is whether every `caBundle` has had what is kept for a while.
pub(crate) fn plan(kept: Option<&Kept>, names: &[String], now: Timestamp, published: bool) -> Due {
    let Some(kept) = kept else {
        return Due::Issue;
    };
    let (Some(ca), Some(serving)) = (
        validity(&kept.ca.certificate),
        validity(&kept.serving.certificate),
    ) else {
        return Due::Issue;
    };
    // A CA that is over vouches for nothing: there is nothing left to hand over from.
    if now >= ca.1 {
        return Due::Issue;
    }
    if kept.next.is_some() && published {
        return Due::Promote;
    }
    let for_all = {
        let has = names_of(&kept.serving.certificate);
        names.iter().all(|name| has.contains(name))
    };
    if now >= two_thirds(serving) || !for_all {
        return Due::Renew;
    }
    if kept.next.is_none() && now >= two_thirds(ca) {
        return Due::Introduce;
    }
    let next = match kept.next {
        // Told by the change that publishes it.
        Some(_) => two_thirds(serving),
        None => two_thirds(serving).min(two_thirds(ca)),
    };
    Due::Nothing(next)
}

fn two_thirds((from, until): (Timestamp, Timestamp)) -> Timestamp {
    let life = until.as_second() - from.as_second();
    Timestamp::from_second(from.as_second() + life / 3 * 2).unwrap_or(until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::certificate::{Lives, Terms};

    #[test]
    fn a_life_of_certificates() {
        let names = ["a.b.svc".to_owned()];
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let lives = Lives::default();
        let at = |now| Terms {
            names: &names,
            now,
            lives,
        };
        assert_eq!(plan(None, &names, start, false), Due::Issue);
        let mut kept = Kept::issue(at(start)).unwrap();
        let Due::Nothing(renewal) = plan(Some(&kept), &names, start, true) else {
            panic!("something is due at once");
        };
        assert!(renewal < start + lives.serving && renewal > start + lives.serving / 2);
        assert_eq!(plan(Some(&kept), &names, renewal, true), Due::Renew);
        let other = ["other.svc".to_owned()];
        assert_eq!(plan(Some(&kept), &other, start, true), Due::Renew);
        let late = start + lives.authority * 7 / 10;
        kept.renew(at(late)).unwrap();
        assert_eq!(plan(Some(&kept), &names, late, true), Due::Introduce);
        let before = kept.bundle();
        kept.introduce(at(late)).unwrap();
        assert!(kept.bundle().starts_with(before.trim()));
        assert!(matches!(
            plan(Some(&kept), &names, late, false),
            Due::Nothing(_)
        ));
        assert_eq!(plan(Some(&kept), &names, late, true), Due::Promote);
        let published = kept.bundle();
        kept.promote(at(late)).unwrap();
        assert_ne!(kept.bundle(), published);
        assert!(matches!(
            plan(Some(&kept), &names, late, true),
            Due::Nothing(_)
        ));
        assert_eq!(
            plan(Some(&kept), &names, start + lives.authority * 2, true),
            Due::Issue
        );
        assert!(Kept::read(&kept.write()) == Some(kept));
    }
}
