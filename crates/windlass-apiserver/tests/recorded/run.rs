//! Sends the requests of a case, in order, and keeps what matters of the answers.

use std::collections::BTreeMap;
use std::future::ready;
use std::time::Duration;

use base64::Engine as _;
use bytes::BytesMut;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use crate::case::{Case, Identity, Keep, Patch, Step, Until, Watch};
use crate::servers::Servers;

/// How long a step may take; a server that is slower is broken.
const PATIENCE: Duration = Duration::from_mins(2);

/// The field manager of writes that name none is made from this.
const USER_AGENT: &str = "recorded/1.0";

/// What came back for one step, before normalising.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) step: String,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

/// Runs a case in a namespace of its own, named after it.
pub(crate) async fn run(name: &str, case: &Case, servers: &Servers) -> Vec<Answer> {
    let namespace = name.replace('_', "-");
    let mut variables = servers.variables.clone();
    variables.insert("ns".to_owned(), namespace.clone());
    if case.namespace {
        prepare(&namespace, servers).await;
    }
    for (name, text) in &case.names {
        let text = filled(text, &variables).expect("a name stands for known ones");
        variables.insert(name.clone(), text);
    }
    let mut answers = run_steps(&case.steps, &mut variables, servers, |_| ready(())).await;
    for answer in &mut answers {
        hide(&mut answer.body, &servers.variables);
    }
    answers
}

/// Where the webhook was and who vouched for it differs from run to run.
fn hide(value: &mut Value, variables: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| hide(value, variables)),
        Value::Array(list) => list.iter_mut().for_each(|value| hide(value, variables)),
        Value::String(text) => {
            for (name, secret) in variables {
                if name == "port" {
                    *text = text.replace(&format!(":{secret}"), ":<port>");
                    continue;
                }
                *text = text.replace(secret, &format!("<{name}>"));
                let address = secret.trim_start_matches("https://");
                *text = text.replace(address, &format!("<{name}>"));
            }
        }
        Value::Number(number) if variables.get("port") == Some(&number.to_string()) => {
            *value = "<port>".into();
        }
        _ => {}
    }
}

/// The steps in order, then what the background watches saw meanwhile. `before` is waited for before
/// each step, which it is told the number of.
pub(crate) async fn run_steps<Before: Future<Output = ()>>(
    steps: &[Step],
    variables: &mut BTreeMap<String, String>,
    servers: &Servers,
    mut before: impl FnMut(usize) -> Before,
) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut background = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        before(number).await;
        tokio::time::sleep(Duration::from_millis(step.after_millis)).await;
        let answer = match tokio::time::timeout(PATIENCE, play(step, variables, servers)).await {
            Ok(Played::Answered(answer)) => answer,
            Ok(Played::Watching(answer, events)) => {
                background.push((answers.len(), events));
                answer
            }
            Err(_) => failed(step, &format!("no complete answer within {PATIENCE:?}")),
        };
        answers.push(answer);
    }
    for (at, mut events) in background {
        answers[at].body = if let Ok(Ok(events)) = tokio::time::timeout(PATIENCE, &mut events).await
        {
            events
        } else {
            events.abort();
            format!("no end of the watch within {PATIENCE:?}").into()
        };
    }
    answers
}

/// What came of a step at once.
enum Played {
    Answered(Answer),
    /// A background watch: its events are still to come.
    Watching(Answer, tokio::task::JoinHandle<Value>),
}

/// The namespace and what a controller would put into it at once: pods need the `ServiceAccount`.
async fn prepare(namespace: &str, servers: &Servers) {
    let objects = [
        (
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        ),
        (
            format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        ),
    ];
    for (path, object) in objects {
        let request = http::Request::post(&path)
            .header("content-type", "application/json")
            .header("user-agent", USER_AGENT)
            .body(Body::from(object.to_string().into_bytes()))
            .expect("a request");
        let answer = servers
            .send(Identity::Admin, request)
            .await
            .expect("the server answers");
        assert_eq!(
            answer.status(),
            201,
            "preparing {path}: is the server fresh?"
        );
    }
}

/// One step, sent again while it asks to wait for something.
async fn play(step: &Step, variables: &mut BTreeMap<String, String>, servers: &Servers) -> Played {
    loop {
        let answer = match once(step, variables, servers).await {
            Played::Answered(answer) => answer,
            watching @ Played::Watching(..) => return watching,
        };
        if step
            .until
            .as_ref()
            .is_none_or(|until| reached(until, &answer))
        {
            for (name, pointer) in &step.capture {
                if let Some(value) = answer.body.pointer(pointer) {
                    let text = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    variables.insert(name.clone(), text);
                }
            }
            let answer = kept(step.keep.as_ref(), answer);
            let answer = without_random(step.generated.as_deref(), answer);
            return Played::Answered(answer);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How long the real server takes, at most, to hear of a configuration.
const HEARD: Duration = Duration::from_secs(2);

async fn once(step: &Step, variables: &BTreeMap<String, String>, servers: &Servers) -> Played {
    if step.method == "HOOKS" {
        return Played::Answered(Answer {
            step: step.name.clone(),
            status: 0,
            content_type: None,
            warnings: Vec::new(),
            body: servers.hooks.take_received().into(),
        });
    }
    let request = match request(step, variables) {
        Ok(request) => request,
        Err(error) => return Played::Answered(failed(step, &error)),
    };
    let response = match servers.send(step.identity, request).await {
        Ok(response) => response,
        Err(error) => return Played::Answered(failed(step, &error.to_string())),
    };
    let configures = ["/admissionregistration.k8s.io/", "/apiextensions.k8s.io/"];
    // Ours knows at once; time passes all the same, and is seen in what is stored.
    if servers.hooks.are_any()
        && step.method != "GET"
        && configures.iter().any(|group| step.path.contains(group))
    {
        tokio::time::sleep(HEARD).await;
    }
    let (head, body) = response.into_parts();
    let header = |name: &str| {
        head.headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let answer = |body: Value| Answer {
        step: step.name.clone(),
        status: head.status.as_u16(),
        content_type: header("content-type").next(),
        warnings: header("warning").collect(),
        body,
    };
    match &step.watch {
        Some(watch) if head.status == 200 => {
            let mut watch = watch.clone();
            if let Some(until) = &mut watch.until {
                *until = filled(until, variables).unwrap_or_else(|error| error);
            }
            if watch.background {
                let reading = tokio::spawn(async move { events(body, &watch).await });
                return Played::Watching(answer(Value::Null), reading);
            }
            Played::Answered(answer(events(body, &watch).await))
        }
        _ => Played::Answered(match body.collect().await {
            Ok(collected) => answer(parsed(&collected.to_bytes())),
            Err(error) => failed(step, &format!("the body broke off: {error}")),
        }),
    }
}

/// The request of a step, with its variables filled in.
fn request(
    step: &Step,
    variables: &BTreeMap<String, String>,
) -> Result<http::Request<Body>, String> {
    let mut uri = filled(&step.path, variables)?;
    for (index, (key, value)) in step.query.iter().enumerate() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        uri.push(if index == 0 { '?' } else { '&' });
        uri.push_str(key);
        uri.push('=');
        uri.push_str(&escaped(&filled(&value, variables)?));
    }
    let mut request = http::Request::builder()
        .method(step.method.as_str())
        .uri(uri)
        .header("user-agent", USER_AGENT);
    for (name, value) in &step.headers {
        request = request.header(name, filled(value, variables)?);
    }
    let body = match (&step.body, &step.raw_body, &step.base64_body) {
        (Some(body), ..) => filled(&body.to_string(), variables)?.into_bytes(),
        (None, Some(raw), _) => filled(raw, variables)?.into_bytes(),
        (None, None, Some(bytes)) => base64::engine::general_purpose::STANDARD
            .decode(bytes)
            .map_err(|error| error.to_string())?,
        (None, None, None) => match (&step.long_body, &step.hex_body) {
            (Some(long), _) => long.text().into_bytes(),
            (None, Some(digits)) => bytes_of(digits)?,
            (None, None) => Vec::new(),
        },
    };
    if !body.is_empty() || step.base64_body.is_some() {
        let patch = step.patch.map(Patch::content_type);
        let content_type = patch.or(step.content_type.as_deref());
        request = request.header("content-type", content_type.unwrap_or("application/json"));
    }
    request
        .body(Body::from(body))
        .map_err(|error| error.to_string())
}

/// The bytes that hexadecimal digits stand for; spaces are left out.
fn bytes_of(digits: &str) -> Result<Vec<u8>, String> {
    digits
        .split_whitespace()
        .flat_map(|word| (0..word.len() / 2).map(move |at| &word[2 * at..2 * at + 2]))
        .map(|pair| u8::from_str_radix(pair, 16).map_err(|error| format!("{pair}: {error}")))
        .collect()
}

/// Replaces `{name}` where a variable of that name could be meant: other braces are JSON's own.
fn filled(text: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        out.push_str(before);
        let name: String = after[1..]
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        if !name.is_empty() && after[1 + name.len()..].starts_with('}') {
            out.push_str(
                variables
                    .get(&name)
                    .ok_or(format!("no earlier step captured {{{name}}}"))?,
            );
            rest = &after[name.len() + 2..];
        } else {
            out.push('{');
            rest = &after[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Percent-encoding of a query value.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    value.bytes().map(encode).collect()
}

/// The events of a watch, one JSON document per line.
async fn events(mut body: Body, watch: &Watch) -> Value {
    let mut buffer = BytesMut::new();
    let mut events = Vec::new();
    loop {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            events.push(parsed(&buffer.split_to(end + 1)));
            if watch.until.is_some() && names(events.last()) == watch.until.as_deref() {
                return json!({ "events": events });
            }
        }
        if watch.events.is_some_and(|wanted| events.len() >= wanted) {
            break;
        }
        match body.frame().await {
            Some(Ok(frame)) => {
                buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            }
            Some(Err(_)) | None => break,
        }
    }
    json!({ "events": events })
}

/// The name of the object that an event is about, in a table too.
fn names(event: Option<&Value>) -> Option<&str> {
    let object = &event?["object"];
    let name = match &object["rows"] {
        Value::Array(rows) => &rows.first()?["object"]["metadata"]["name"],
        _ => &object["metadata"]["name"],
    };
    name.as_str()
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}

fn reached(until: &Until, answer: &Answer) -> bool {
    until.status.is_none_or(|wanted| wanted == answer.status)
        && until
            .equals
            .iter()
            .all(|(pointer, wanted)| answer.body.pointer(pointer) == Some(wanted))
        && until
            .contains
            .iter()
            .all(|(pointer, wanted)| contains(answer.body.pointer(pointer), wanted))
}

/// Whether a list has an element with each of these.
fn contains(list: Option<&Value>, wanted: &[BTreeMap<String, Value>]) -> bool {
    let elements = list
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    wanted.iter().all(|fields| {
        let has_all = |element: &Value| {
            fields
                .iter()
                .all(|(name, value)| element.get(name) == Some(value))
        };
        elements.iter().any(has_all)
    })
}

fn kept(keep: Option<&Keep>, mut answer: Answer) -> Answer {
    if let Some(keep) = keep
        && let Some(Value::Array(list)) = answer.body.pointer_mut(&keep.list)
    {
        list.retain(|element| {
            element
                .pointer(&keep.field)
                .is_some_and(|found| keep.values.contains(found))
        });
    }
    answer
}

/// Takes the random ending off names that begin like this.
fn without_random(base: Option<&str>, mut answer: Answer) -> Answer {
    const ENDING: &str = "<random>";
    let Some(base) = base else { return answer };
    let text = answer.body.to_string();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(base) {
        let (before, after) = rest.split_at(at + base.len());
        out.push_str(before);
        let is_random = |ending: &&str| ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        rest = match after.get(..5).filter(is_random) {
            Some(_) if !after[5..].starts_with(|next: char| next.is_ascii_alphanumeric()) => {
                out.push_str(ENDING);
                &after[5..]
            }
            _ => after,
        };
    }
    out.push_str(rest);
    answer.body = serde_json::from_str(&out).expect("only letters were replaced");
    answer
}

/// A step that got no answer at all still has an entry, so that the others stay comparable.
fn failed(step: &Step, why: &str) -> Answer {
    Answer {
        step: step.name.clone(),
        status: 0,
        content_type: None,
        warnings: Vec::new(),
        body: format!("no answer: {why}").into(),
    }
}
