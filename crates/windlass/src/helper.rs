//! Helpers: other things that the program of an operator does, in pods that the operator makes.
//!
//! A pod that has to do something only the operator knows how to do, such as to fetch a file before
//! its main container starts, runs the operator's own image with the arguments
//! `helper <name> <arguments>`.

use std::{future::Future, sync::Arc};

use futures::{FutureExt, future::BoxFuture};

use crate::{Error, Operator, Result};

/// The variable that says which image the operator runs in.
const IMAGE_VARIABLE: &str = "OPERATOR_IMAGE";

/// What a helper does with its arguments; it returns what is printed.
pub(crate) type Help = Arc<dyn Fn(Vec<String>) -> BoxFuture<'static, Result<String>> + Send + Sync>;

impl Operator {
    /// Adds a helper: `<program> helper <name> <arguments>` calls the function and prints what it
    /// returns. It has no client: what it needs to know is in its arguments and in what is mounted.
    #[must_use]
    pub fn helper<F, Fut>(mut self, name: &str, help: F) -> Self
    where
        F: Fn(Vec<String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String>> + Send + 'static,
    {
        let help: Help = Arc::new(move |arguments| help(arguments).boxed());
        self.helpers.insert(name.to_owned(), help);
        self
    }

    /// Whether it has a helper of that name.
    pub fn has_helper(&self, name: &str) -> bool {
        self.helpers.contains_key(name)
    }

    /// What a helper returns.
    pub async fn help(&self, name: &str, arguments: Vec<String>) -> Result<String> {
        if let Some(help) = self.helpers.get(name) {
            return help(arguments).await;
        }
        let known: Vec<&str> = self.helpers.keys().map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "it has none".to_owned(),
            known => format!("it has {}", known.join(", ")),
        };
        Err(Error::other(format!(
            "there is no helper {name:?}: {known}"
        )))
    }
}

/// The image that the operator runs in, for pods that run its [helpers](Operator::helper): the
/// variable `OPERATOR_IMAGE`, or `<name>:<version>`, which the generated manifests have by default.
/// Set the variable where the image has another name.
pub fn own_image(name: &str, version: &str) -> String {
    match std::env::var(IMAGE_VARIABLE) {
        Ok(image) if !image.is_empty() => image,
        _ => format!("{name}:{version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn helper_gets_its_arguments_and_unknown_one_is_named() {
        let operator = Operator::new("demo").helper("echo", async |arguments: Vec<String>| {
            Ok(arguments.join(" "))
        });
        let said = operator
            .help("echo", vec!["a".to_owned(), "b".to_owned()])
            .await;
        assert_eq!(said.unwrap(), "a b");
        assert!(operator.has_helper("echo"));
        let error = operator.help("fetch", Vec::new()).await.unwrap_err();
        assert!(
            error.to_string().contains("\"fetch\": it has echo"),
            "{error}"
        );
    }
}
