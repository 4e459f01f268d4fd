//! Deletes of a whole collection: each object by itself.

use http::StatusCode;
use serde_json::json;

use super::Options;
use crate::http::{Answer, Shape};
use crate::status::{ApiError, Result};
use crate::verbs::Call;
use crate::verbs::present::list_item;
use crate::verbs::selector::Selector;

impl Call<'_> {
    pub(in crate::verbs) async fn delete_collection(&self) -> Result<Answer> {
        let (options, dry_run) = Options::read(self)?;
        let selector = Selector::from_query(&self.query, &self.resource)?;
        self.warn_of_orphans(&options);
        let listing = self
            .server
            .store()
            .list(
                &self.resource.table,
                Some(self.namespace()).filter(|namespace| !namespace.is_empty()),
                None,
                None,
            )
            .map_err(|_| ApiError::internal("the present is always there to be listed"))?;
        let mut deleted = Vec::new();
        for object in listing
            .objects
            .iter()
            .filter(|object| selector.matches(object))
        {
            let deletion = self.delete_object(&object.key, Some(""), &options, dry_run);
            match deletion.await {
                // What is told is what was found, as it was.
                Ok(_) => {
                    let item = self.to_requested(object.value()).await?;
                    deleted.push(list_item(item, &self.resource));
                }
                // Somebody else deleted it meanwhile: it is gone, as asked.
                Err(error) if error.code == StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
        if self.resource.is_custom() && self.wanted.shape == Shape::Object {
            metadata["continue"] = "".into();
        }
        if self.wanted.shape == Shape::Table {
            return Ok(Answer::value(crate::table::of(
                &self.resource,
                &deleted,
                &metadata,
                self.table_options(),
            )));
        }
        Ok(Answer::value(json!({
            "kind": self.resource.list_kind,
            "apiVersion": self.resource.api_version(),
            "metadata": metadata,
            "items": deleted,
        })))
    }
}
