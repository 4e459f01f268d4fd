//! The Secret of the AWS command line: its files `credentials` and `config`.

use std::collections::BTreeMap;

use super::{SecretData, StoreError};

/// What the two files say for the profile `default`.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Aws {
    pub(super) key_id: String,
    pub(super) secret_key: String,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) path_style: Option<bool>,
}

impl Aws {
    pub(super) fn read(secret: &SecretData) -> Result<Self, StoreError> {
        let file = |name: &str| -> Result<BTreeMap<String, String>, StoreError> {
            let bytes = secret.get(name).map_or(&[][..], Vec::as_slice);
            let text = std::str::from_utf8(bytes)
                .map_err(|_| StoreError::Secret(format!("its key {name} is not text")))?;
            Ok(default_profile(text))
        };
        if !secret.contains_key("credentials") {
            return Err(StoreError::Secret("it has no key credentials".to_owned()));
        }
        let (credentials, config) = (file("credentials")?, file("config")?);
        let either = |name: &str| credentials.get(name).or_else(|| config.get(name)).cloned();
        let needed = |name: &str| {
            let missing = || format!("its key credentials has no {name} in profile [default]");
            either(name).ok_or_else(|| StoreError::Secret(missing()))
        };
        Ok(Self {
            key_id: needed("aws_access_key_id")?,
            secret_key: needed("aws_secret_access_key")?,
            token: either("aws_session_token"),
            region: either("region"),
            endpoint: either("endpoint_url"),
            path_style: either("addressing_style").and_then(|style| match style.as_str() {
                "path" => Some(true),
                "virtual" => Some(false),
                _ => None,
            }),
        })
    }
}

/// The settings of the profile `default`, also those of the section `s3` in it.
fn default_profile(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut is_default = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            is_default = matches!(name.trim(), "default" | "profile default");
            continue;
        }
        if !is_default || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, value)) = line.split_once('=') {
            let value = value.trim();
            if !value.is_empty() {
                found.insert(name.trim().to_lowercase(), value.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(credentials: &str, config: &str) -> SecretData {
        [("credentials", credentials), ("config", config)]
            .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
            .into()
    }

    #[test]
    fn files_of_the_tutorial_are_read() {
        let credentials = "[other]\naws_access_key_id = no\n[default]\naws_access_key_id = XXX\n# x\naws_secret_access_key = YYY=\n";
        let config = "[default]\nregion = eu-central-1\nendpoint_url = http://10.0.0.1:7070\ns3 =\n  addressing_style = path\n";
        let aws = Aws::read(&secret(credentials, config)).unwrap_or_default();
        assert_eq!(
            (aws.key_id.as_str(), aws.secret_key.as_str()),
            ("XXX", "YYY=")
        );
        assert_eq!(aws.region.as_deref(), Some("eu-central-1"));
        assert_eq!(aws.endpoint.as_deref(), Some("http://10.0.0.1:7070"));
        assert_eq!(aws.path_style, Some(true));
    }

    #[test]
    fn missing_field_is_named_and_its_value_is_not() {
        let text = |secret| Aws::read(&secret).err().map(|error| error.to_string());
        let message = text(secret("[default]\naws_access_key_id = hush\n", "")).unwrap();
        assert!(message.contains("no aws_secret_access_key"), "{message}");
        assert!(!message.contains("hush"), "{message}");
        let message = text(SecretData::new()).unwrap();
        assert!(message.contains("no key credentials"), "{message}");
    }
}
