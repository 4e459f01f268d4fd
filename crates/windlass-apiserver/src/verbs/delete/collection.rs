//! Deletes of a whole collection: each object by itself.

use http::StatusCode;
use serde_json::json;

use super as delete;
use super::Options;
use crate::http::{Answer, Shape};
use crate::status::{ApiError, Result};
use crate::verbs::present::list_item;
use crate::verbs::selector::Selector;
use crate::verbs::{Call, form, present};

pub(in crate::verbs) async fn run(call: &Call<'_>) -> Result<Answer> {
    let (options, dry_run) = Options::read(call)?;
    let selector = Selector::from_query(&call.query, &call.resource)?;
    delete::warn_of_orphans(call, &options);
    let listing = call
        .server
        .store()
        .list(
            &call.resource.table,
            Some(call.namespace()).filter(|namespace| !namespace.is_empty()),
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
        let deletion = delete::one(call, &object.key, Some(""), &options, dry_run);
        match deletion.await {
            // What is told is what was found, as it was.
            Ok(_) => {
                let item = form::to_requested(call.server, &call.resource, object.value()).await?;
                deleted.push(list_item(item, &call.resource));
            }
            // Somebody else deleted it meanwhile: it is gone, as asked.
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
    if call.resource.is_custom() && call.wanted.shape == Shape::Object {
        metadata["continue"] = "".into();
    }
    if call.wanted.shape == Shape::Table {
        return Ok(Answer::value(crate::table::of(
            &call.resource,
            &deleted,
            &metadata,
            present::table_options(call),
        )));
    }
    Ok(Answer::value(json!({
        "kind": call.resource.list_kind,
        "apiVersion": call.resource.api_version(),
        "metadata": metadata,
        "items": deleted,
    })))
}
