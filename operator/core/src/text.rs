//! Objects as text.
//!
//! An object takes many times the memory of its text: an empty object is two bytes of JSON and may be a volume of three
//! kilobytes. So what waits, for a request to be sent or for a plan to be made, waits as text.

use std::{fmt, marker::PhantomData};

use serde::{Serialize, de::DeserializeOwned};

/// The JSON text of a `K`.
pub struct Text<K> {
    json: Box<str>,
    of: PhantomData<fn() -> K>,
}

impl<K: Serialize> Text<K> {
    /// The text of an object.
    ///
    /// # Errors
    ///
    /// An object that was never read from JSON and cannot be written as such.
    pub fn of(object: &K) -> Result<Self, serde_json::Error> {
        Ok(Self { json: serde_json::to_string(object)?.into(), of: PhantomData })
    }
}

impl<K: DeserializeOwned> Text<K> {
    /// The object that this is the text of.
    ///
    /// # Errors
    ///
    /// A `K` that does not read what it writes.
    pub fn read(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(&self.json)
    }
}

impl<K> Text<K> {
    /// The text.
    #[must_use]
    pub const fn json(&self) -> &str {
        &self.json
    }
}

// What is derived would ask the same of `K`.
impl<K> Clone for Text<K> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), of: PhantomData }
    }
}

impl<K> PartialEq for Text<K> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<K> fmt::Debug for Text<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.json)
    }
}
