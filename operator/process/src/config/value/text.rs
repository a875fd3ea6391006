//! Strings that mean something: addresses and names.

use std::{
    fmt,
    marker::PhantomData,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use rustls::pki_types::ServerName;
use schemars::{Schema, json_schema};
use serde::{
    Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};

/// A value that is written as a string.
pub(in crate::config) trait Text: Sized {
    /// What it looks like, in words.
    const EXPECTED: &str;
    /// What it looks like, as far as a regular expression can say it.
    const PATTERN: &str;

    /// The value that `text` stands for, if it stands for one.
    fn parse(text: &str) -> Option<Self>;

    fn schema() -> Schema {
        json_schema!({"type": "string", "pattern": Self::PATTERN, "x-expected": Self::EXPECTED})
    }
}

/// Has a [`Text`] read as what it is, and described.
macro_rules! reads {
    ($text:ident) => {
        impl<'de> serde::Deserialize<'de> for $text {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(super::text::TextVisitor::new())
            }
        }

        impl schemars::JsonSchema for $text {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($text).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <Self as super::text::Text>::schema()
            }
        }
    };
}
pub(super) use reads;

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindAddress {
    /// `"0"`: nowhere.
    Off,
    /// `host:port`, with an IP address (IPv6 in brackets) or `localhost` as the host. No host, as in
    /// `:8081`, means every interface: `[::]`. Port 0 means any free one.
    At(SocketAddr),
}

impl BindAddress {
    /// The port of every interface.
    #[must_use]
    pub fn everywhere(port: u16) -> Self {
        Self::At((Ipv6Addr::UNSPECIFIED, port).into())
    }

    /// The address; `None`: nowhere.
    #[must_use]
    pub const fn get(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl Text for BindAddress {
    const EXPECTED: &str = "\"0\", :port or address:port, such as 127.0.0.1:8081 or [::1]:8081";
    const PATTERN: &str = "^(0|[^ ]*:[0-9]+)?$";

    fn parse(text: &str) -> Option<Self> {
        let address = match text {
            "0" => return Some(Self::Off),
            _ => match text.rsplit_once(':')? {
                ("", port) => (Ipv6Addr::UNSPECIFIED, port.parse().ok()?).into(),
                ("localhost", port) => (Ipv4Addr::LOCALHOST, port.parse().ok()?).into(),
                _ => text.parse().ok()?,
            },
        };
        Some(Self::At(address))
    }
}

impl Serialize for BindAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("0"),
            Self::At(all) if all.ip() == Ipv6Addr::UNSPECIFIED => {
                serializer.collect_str(&format_args!(":{}", all.port()))
            }
            Self::At(address) => serializer.collect_str(address),
        }
    }
}

reads!(BindAddress);

/// The name of a health endpoint, without the leading slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointName(pub String);

impl Text for EndpointName {
    const EXPECTED: &str = "letters, digits and -._~/, such as readyz";
    const PATTERN: &str = "^[A-Za-z0-9._~/-]*$";

    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix('/').unwrap_or(text);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        (!name.is_empty() && name.chars().all(fits)).then(|| Self(name.to_owned()))
    }
}

reads!(EndpointName);

/// What a certificate can be for: a DNS name or an IP address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateName(pub String);

impl Text for CertificateName {
    const EXPECTED: &str = "a DNS name or an IP address, such as webhook.example.com";
    const PATTERN: &str = "^[^ ]+$";

    fn parse(text: &str) -> Option<Self> {
        ServerName::try_from(text).ok().map(|_| Self(text.to_owned()))
    }
}

reads!(CertificateName);

impl Text for String {
    const EXPECTED: &str = "a string";
    const PATTERN: &str = "";

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// A value for which `""` is as if it were absent.
pub(in crate::config) fn unless_empty<'de, D: Deserializer<'de>, T: Text>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_option(UnlessEmptyVisitor(PhantomData))
}

struct UnlessEmptyVisitor<T>(PhantomData<T>);

impl<'de, T: Text> Visitor<'de> for UnlessEmptyVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text.is_empty() { Ok(None) } else { TextVisitor::new().visit_str(text).map(Some) }
    }
}

pub(super) struct TextVisitor<T>(PhantomData<T>);

impl<T> TextVisitor<T> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Text> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}
