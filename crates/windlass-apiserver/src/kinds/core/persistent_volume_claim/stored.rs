//! `PersistentVolumeClaims` between the store and their readers.
//!
//! A claim's phase is a default like any other, but a new claim loses its whole status after the
//! defaults were filled in. So it is kept without a phase, reads as pending, and the first write
//! stores it anew even when it changes nothing; operators see that as one more event.

use serde_json::Value;

const PENDING: &str = "Pending";

/// Makes a new claim what is kept of it.
pub(crate) fn keep_new(claim: &mut Value) {
    if let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("phase");
    }
}

/// Makes what is kept of a claim the claim.
pub(crate) fn read_kept(claim: &mut Value) {
    if claim["status"].get("phase").is_none() {
        claim["status"]["phase"] = PENDING.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_claim_is_kept_without_the_phase_it_reads_with() {
        let claim = json!({"status": {"phase": "Pending"}});
        let mut kept = claim.clone();
        keep_new(&mut kept);
        assert_eq!(kept, json!({"status": {}}));
        read_kept(&mut kept);
        assert_eq!(kept, claim);
    }
}
