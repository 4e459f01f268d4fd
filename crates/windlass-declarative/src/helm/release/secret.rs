//! The Secret that keeps a revision.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::Release;

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// How large the document of a release may be.
const MAX_SIZE: u64 = 64 << 20;
const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];

/// Why a Secret is no release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode release {name}: {reason}")]
pub struct DecodeError {
    name: String,
    reason: String,
}

impl Release {
    /// Reads a release from its Secret.
    pub fn from_secret(secret: &Value) -> Result<Self, DecodeError> {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        let failed = |reason: String| DecodeError {
            name: name.to_owned(),
            reason,
        };
        let Some(outer) = secret["data"]["release"].as_str() else {
            return Err(failed("the Secret has no key release".to_owned()));
        };
        let decode = |text: &[u8]| STANDARD.decode(text).map_err(|why| failed(why.to_string()));
        // Once for the Secret, once for Helm.
        let packed = decode(&decode(outer.as_bytes())?)?;
        let bytes = if packed.starts_with(GZIP) {
            let mut bytes = Vec::new();
            GzDecoder::new(packed.as_slice())
                .take(MAX_SIZE + 1)
                .read_to_end(&mut bytes)
                .map_err(|why| failed(why.to_string()))?;
            if bytes.len() as u64 > MAX_SIZE {
                return Err(failed(format!("it is larger than {MAX_SIZE} bytes")));
            }
            bytes
        } else {
            packed
        };
        let document = match serde_json::from_slice(&bytes) {
            Ok(Value::Object(document)) => document,
            Ok(_) => return Err(failed("it is not an object".to_owned())),
            Err(why) => return Err(failed(why.to_string())),
        };
        let mut labels = secret["metadata"]["labels"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for known in ["name", "owner", "status", "version"] {
            labels.remove(known);
        }
        Ok(Self { document, labels })
    }

    /// The Secret that keeps it. The same release makes the same Secret.
    pub fn secret(&self) -> Value {
        let mut labels = self.labels.clone();
        for (name, value) in [
            ("name", self.name().to_owned()),
            ("owner", "helm".to_owned()),
            ("status", self.status().name().to_owned()),
            ("version", self.revision().to_string()),
        ] {
            labels.insert(name.to_owned(), json!(value));
        }
        let document = serde_json::to_vec(&self.document).unwrap_or_default();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Nothing is refused by memory.
        let _ = encoder.write_all(&document);
        let packed = encoder.finish().unwrap_or_default();
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": secret_name(self.name(), self.revision()),
                "namespace": self.namespace(),
                "labels": labels,
            },
            "type": SECRET_TYPE,
            "data": {"release": STANDARD.encode(STANDARD.encode(packed))},
        })
    }
}

/// The name of the Secret of a revision.
pub fn secret_name(release: &str, revision: u64) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}
