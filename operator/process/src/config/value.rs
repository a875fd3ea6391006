//! The values of the configuration file: each type admits what is valid and nothing else.
//!
//! A type states its bounds once. Errors and the tables of the documentation show them in the same words
//! (`x-expected`), and the schema of the chart's values is generated from the type's JSON Schema.

use std::marker::PhantomData;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

mod duration;
mod number;
mod text;

pub use duration::{GoDuration, Interval};
pub use number::{Concurrency, Count, PerSecond, Port, Whole};
pub(super) use text::unless_empty;
pub use text::{BindAddress, CertificateName, EndpointName};

/// Declares sections of the file: for each field the description, the type and the default, in one line.
///
/// The syntax is that of default field values (RFC 3681), which are not stable yet. A field that is absent or
/// `null` gets its default. The JSON Schema has description, bounds and default of every field.
#[macro_export]
macro_rules! sections {
    ($(
        $(#[$of_section:meta])*
        pub struct $section:ident {
            $($(#[$of_field:meta])* pub $field:ident: $type:ty = $default:expr,)*
        }
    )*) => {$(
        $(#[$of_section])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(deny_unknown_fields, default)]
        pub struct $section {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl<'de> serde::Deserialize<'de> for $section {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Default, serde::Deserialize)]
                #[serde(default, rename_all = "camelCase", deny_unknown_fields)]
                struct Given {
                    $($(#[$of_field])* $field: Option<$type>,)*
                }
                let given: Given =
                    $crate::config::value::section(deserializer)?.unwrap_or_default();
                Ok(Self { $($field: given.$field.unwrap_or_else(|| $default),)* })
            }
        }
    )*};
}
pub use sections;

/// A section that may be absent or `null`: then it has its defaults.
///
/// # Errors
///
/// What is wrong with a field of it.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A section: named fields, never a list of their values. `null` is as if it were absent.
///
/// # Errors
///
/// What is wrong with a field of it.
pub fn section<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(SectionVisitor(PhantomData))
}

struct SectionVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SectionVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a section of named fields")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}
