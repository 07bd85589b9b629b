//! The bytes of a record in JSON.

use data_encoding::BASE64;
use serde_json::{Value, json};

/// An object with the body as `text` if it is UTF-8, else as `base64`.
pub fn json(body: &[u8]) -> Value {
    match std::str::from_utf8(body) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": BASE64.encode(body) }),
    }
}
