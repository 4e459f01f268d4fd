//! [`Remote`]: real stores, by the crate `object_store`.

use std::{error::Error as _, ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    RetryConfig,
    aws::{AmazonS3, AmazonS3Builder, Checksum},
    multipart::{MultipartStore, PartId},
    path::Path,
};

use super::{Call, Place, SecretData, Store, StoreError, Stores, secret::Aws};

/// A store that cannot be connected to in this time is not there.
const CONNECT: Duration = Duration::from_secs(5);
/// A request that takes longer than this is stuck: a part of 8 MiB takes less on a slow line.
const REQUEST: Duration = Duration::from_mins(1);
/// The region where none is set: stores that are not Amazon's take any.
const REGION: &str = "us-east-1";

/// Opens stores over the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remote {
    _private: (),
}

impl Stores for Remote {
    fn open(&self, place: &Place, secret: &SecretData) -> Result<Arc<dyn Store>, StoreError> {
        // The HTTP client takes the process's provider; another part may have set it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let aws = Aws::read(secret)?;
        let endpoint = match place.endpoint.as_str() {
            "" => aws.endpoint.clone(),
            endpoint => Some(endpoint.to_owned()),
        };
        let path_style = place.path_style.or(aws.path_style);
        let path_style = path_style.unwrap_or(endpoint.is_some());
        let client = ClientOptions::new()
            .with_connect_timeout(CONNECT)
            .with_timeout(REQUEST)
            .with_allow_http(true);
        // The reconcile retries as a whole, and says meanwhile what is wrong.
        let retry = RetryConfig {
            max_retries: 2,
            retry_timeout: REQUEST,
            backoff: BackoffConfig::default(),
        };
        let mut builder = AmazonS3Builder::new()
            .with_client_options(client)
            .with_retry(retry)
            .with_allow_http(true)
            .with_disable_bulk_delete(true)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_access_key_id(aws.key_id)
            .with_secret_access_key(aws.secret_key)
            .with_region(aws.region.unwrap_or_else(|| REGION.to_owned()))
            .with_bucket_name(&place.bucket)
            .with_virtual_hosted_style_request(!path_style);
        if let Some(token) = aws.token {
            builder = builder.with_token(token);
        }
        if let Some(endpoint) = endpoint {
            let endpoint = match endpoint.split_once("://") {
                // In this style the builder expects the bucket in the host already.
                Some((scheme, host)) if !path_style => {
                    format!("{scheme}://{}.{host}", place.bucket)
                }
                _ => endpoint,
            };
            builder = builder.with_endpoint(endpoint);
        }
        let s3 = builder
            .build()
            .map_err(|_| StoreError::Secret("its endpoint or region is not valid".to_owned()))?;
        Ok(Arc::new(S3(s3)))
    }
}

struct S3(AmazonS3);

#[async_trait]
impl Store for S3 {
    async fn begin(&self, key: &str) -> Result<String, StoreError> {
        let begun = self.0.create_multipart(&path(key, Call::Begin)?).await;
        begun.map_err(|error| told(Call::Begin, &error))
    }

    async fn part(
        &self,
        key: &str,
        upload: &str,
        index: usize,
        bytes: Bytes,
    ) -> Result<String, StoreError> {
        let (path, upload) = (path(key, Call::Part)?, upload.to_owned());
        let put = self.0.put_part(&path, &upload, index, bytes.into()).await;
        let part = put.map_err(|error| told(Call::Part, &error))?;
        Ok(part.content_id)
    }

    async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: Vec<String>,
    ) -> Result<(), StoreError> {
        let (path, upload) = (path(key, Call::Complete)?, upload.to_owned());
        let parts = parts.into_iter().map(|content_id| PartId { content_id });
        let done = self.0.complete_multipart(&path, &upload, parts.collect());
        done.await
            .map(drop)
            .map_err(|error| told(Call::Complete, &error))
    }

    async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError> {
        let (path, upload) = (path(key, Call::Abort)?, upload.to_owned());
        match self.0.abort_multipart(&path, &upload).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(told(Call::Abort, &error)),
        }
    }

    async fn create(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let options = PutOptions::from(PutMode::Create);
        let path = path(key, Call::Create)?;
        let put = self.0.put_opts(&path, bytes.into(), options).await;
        put.map(drop).map_err(|error| told(Call::Create, &error))
    }

    async fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        match self.0.head(&path(key, Call::Size)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(told(Call::Size, &error)),
        }
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let read = self.0.get_range(&path(key, Call::Read)?, range).await;
        read.map_err(|error| told(Call::Read, &error))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        // The crate's prefixes are whole folders; neighbours are left out here.
        let folder = prefix.rsplit_once('/').map(|(folder, _)| folder);
        let folder = folder.map(|folder| path(folder, Call::List)).transpose()?;
        let listed = self.0.list_with_delimiter(folder.as_ref()).await;
        let listed = listed.map_err(|error| told(Call::List, &error))?;
        let keys = listed
            .objects
            .into_iter()
            .map(|meta| meta.location.to_string());
        let mut keys: Vec<String> = keys.filter(|key| key.starts_with(prefix)).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.0.delete(&path(key, Call::Delete)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(told(Call::Delete, &error)),
        }
    }
}

fn path(key: &str, call: Call) -> Result<Path, StoreError> {
    Path::parse(key).map_err(|_| StoreError::Unavailable {
        call,
        message: format!("{key:?} is not a key"),
    })
}

/// What an error of the crate means. Its text may repeat what the store answered, and is left out.
fn told(call: Call, error: &Error) -> StoreError {
    match error {
        Error::NotFound { .. } => return StoreError::NotFound(call),
        Error::AlreadyExists { .. } | Error::Precondition { .. } => {
            return StoreError::AlreadyExists(call);
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            return StoreError::AccessDenied(call);
        }
        _ => {}
    }
    let mut causes = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(next) = cause {
        causes.push(next.to_string());
        cause = next.source();
    }
    let text = causes.join(" ").to_lowercase();
    if text.contains("timed out") || text.contains("timeout") {
        return StoreError::TimedOut(call);
    }
    let message = if text.contains("error sending request") || text.contains("connect") {
        "the store cannot be reached; check its endpoint"
    } else {
        "the store answered with an error"
    };
    StoreError::Unavailable {
        call,
        message: message.to_owned(),
    }
}
