//! Get: one object, as it was last published.

use super::{Call, list, present};
use crate::http::Answer;
use crate::status::Result;

pub(super) async fn run(call: &Call<'_>) -> Result<Answer> {
    let version = list::version_asked(&call.query)?;
    let present = call.server.store().revision();
    if let Some(version) = version.filter(|version| *version > present) {
        return Err(list::too_large(version, present));
    }
    let found = call
        .server
        .store()
        .published()
        .get(&call.resource.table, &call.key())
        .ok_or_else(|| call.not_found())?;
    present::stored(call, &found).await
}
