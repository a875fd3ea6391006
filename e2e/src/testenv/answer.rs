//! What the API server says to one request, its warnings included.

use anyhow::{Context, Result};
use http::header::{CONTENT_TYPE, WARNING};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// An answer of the API server, whatever it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Its HTTP code.
    pub code: u16,
    /// Its warnings, in their order.
    pub warnings: Vec<String>,
    /// The object, or the status that says what is wrong.
    pub object: Value,
}

impl Answer {
    /// What is wrong, if something is.
    #[must_use]
    pub fn message(&self) -> &str {
        self.object.get("message").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Asks the API server.
pub async fn ask(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<Answer> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, content_type);
    let answer = client.send(request.body(Body::from(body))?).await?;
    let (head, body) = answer.into_parts();
    let body = body.collect().await.context("the answer ends too early")?.to_bytes();
    let object = serde_json::from_slice(&body)
        .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(&body)))?;
    Ok(Answer { code: head.status.as_u16(), warnings: warnings(&head.headers), object })
}

/// The texts of the warnings, each of which is `299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(WARNING).iter().filter_map(|value| value.to_str().ok());
    values.map(|value| text_of(value).unwrap_or_else(|| value.to_owned())).collect()
}

fn text_of(warning: &str) -> Option<String> {
    let quoted = warning.strip_prefix("299 - \"")?.strip_suffix('"')?;
    let mut text = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_read_without_its_quotes() {
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "a \"b\" \\ c""#.parse().unwrap());
        headers.append(WARNING, r#"299 - "second""#.parse().unwrap());
        headers.append(WARNING, "odd".parse().unwrap());
        assert_eq!(warnings(&headers), [r#"a "b" \ c"#, "second", "odd"]);
    }
}
