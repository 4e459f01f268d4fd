//! Create.

use http::StatusCode;

use super::Call;
use crate::http::Answer;
use crate::status::Result;

impl Call<'_> {
    pub(super) async fn create(&self) -> Result<Answer> {
        let object = self.decode()?;
        let written = self.create_object(object, None).await?;
        self.answer_written(written, StatusCode::CREATED).await
    }
}
