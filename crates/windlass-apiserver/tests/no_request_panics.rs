//! Whatever a client sends, it gets an answer and nothing panics; and what was stored on the way
//! can still be listed.

#[path = "generated/mod.rs"]
mod generated;

use http::Request;
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use serde_json::Value;
use tower::ServiceExt;

use generated::{PLURALS, any_request, furnish, send};
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_request_is_answered(requests in proptest::collection::vec(any_request(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime starts");
        runtime.block_on(async {
            let server = ApiServer::new(Config {
                clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
                random: Random::seeded(1),
                ..Config::default()
            });
            let client = server.in_process(Identity::admin());
            furnish(&client).await;
            for sent in &requests {
                send(&client, sent).await;
            }
            for plural in PLURALS {
                let request = Request::get(format!("/{plural}")).body(Full::default());
                let answer = client.clone().oneshot(request.expect("a request")).await;
                let answer = answer.expect("infallible");
                if answer.status() == 404 {
                    continue; // The definition of things was deleted.
                }
                let bytes = answer.into_body().collect().await.expect("whole").to_bytes();
                let list: Value = serde_json::from_slice(&bytes).expect("lists are JSON");
                for item in list["items"].as_array().expect("a list") {
                    assert!(item["metadata"]["name"].is_string(), "{item}");
                }
            }
        });
    }
}
