//! Create.

use http::StatusCode;

use super::{Call, body, pipeline, present};
use crate::http::Answer;
use crate::status::Result;

pub(super) async fn run(call: &Call<'_>) -> Result<Answer> {
    let object = body::decode(call)?;
    let written = pipeline::create(call, object, None).await?;
    present::written(call, written, StatusCode::CREATED).await
}
