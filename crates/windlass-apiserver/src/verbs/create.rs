//! Create.

use http::StatusCode;

use super::Call;
use crate::http::Answer;
use crate::resource::Resource;
use crate::status::Result;

impl Call<'_> {
    pub(super) fn create(&self) -> Result<Answer> {
        let (object, warnings) = self.decode()?;
        let written = self.create_object(object, None)?;
        Ok(self.answer_written(written, StatusCode::CREATED, warnings))
    }
}

/// What a client of a kind that is on its way out is told.
pub(super) fn deprecation(resource: &Resource) -> Option<String> {
    resource.is("", "endpoints").then(|| {
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
    })
}
