//! The example as a program.

use std::{env, sync::Arc};

use hyper_util::{client::legacy::Client, rt::TokioExecutor};

windlass::main!(|| {
    let api = env::var("NAME_SERVICE").unwrap_or_else(|_| "http://127.0.0.1:8053".to_owned());
    let client = Client::builder(TokioExecutor::new()).build_http();
    external_api_operator::operator(api, Arc::new(client))
});
