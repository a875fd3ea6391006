//! The values of the configuration file: each type admits what is valid and nothing else.

use std::{
    fmt,
    marker::PhantomData,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use rustls::pki_types::ServerName;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

/// A whole number from `MIN` to `MAX`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: u32, const MAX: u32>(u32);

/// A TCP port.
pub type Port = Whole<1, 65_535>;

/// How many at a time; at least 1.
pub type Concurrency = Whole<1, MAX_INT32>;

/// A number of seconds, or of tokens in a bucket.
pub type Count = Whole<0, MAX_INT32>;

/// How many series jobs may have of their own.
pub type NearestDeadlines = Whole<0, 1_000>;

/// The largest value of Go's `int32`, which the format's integers are.
const MAX_INT32: u32 = i32::MAX.unsigned_abs();

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Visitor<'_> for WholeVisitor<MIN, MAX> {
    type Value = Whole<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number between {MIN} and {MAX}")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match u32::try_from(number) {
            Ok(whole) if (MIN..=MAX).contains(&whole) => Ok(Whole(whole)),
            _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        match i64::try_from(number) {
            Ok(signed) => self.visit_i64(signed),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}

/// How many a second: 0, or from 0.001 to 1,000,000.
///
/// The bounds keep everything that is computed from a rate far from the ends of its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSecond(f64);

impl PerSecond {
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerSecondVisitor)
    }
}

struct PerSecondVisitor;

impl Visitor<'_> for PerSecondVisitor {
    type Value = PerSecond;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0 or a number between 0.001 and 1000000")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<PerSecond, E> {
        if number == 0.0 || (0.001..=1e6).contains(&number) {
            Ok(PerSecond(number))
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<PerSecond, E> {
        match u32::try_from(number) {
            Ok(whole) if whole <= 1_000_000 => Ok(PerSecond(whole.into())),
            _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<PerSecond, E> {
        match i64::try_from(number) {
            Ok(signed) => self.visit_i64(signed),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BindAddress {
    /// `""`: where it does by default.
    #[default]
    Default,
    /// `"0"`: nowhere.
    Off,
    /// `host:port`, with an IP address (IPv6 in brackets) or `localhost` as the host. No host, as in
    /// `:8081`, means every interface: `[::]`. Port 0 means any free one.
    At(SocketAddr),
}

impl BindAddress {
    fn parse(text: &str) -> Option<Self> {
        let address = match text {
            "" => return Some(Self::Default),
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

impl<'de> Deserialize<'de> for BindAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "\"0\", :port or address:port, such as 127.0.0.1:8081 or [::1]:8081";
        parsed(deserializer, expected, Self::parse)
    }
}

/// The name of a health endpoint, without the leading slash; `None` for `""`, the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointName(pub Option<String>);

impl EndpointName {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(None));
        }
        let name = text.strip_prefix('/').unwrap_or(text);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        (!name.is_empty() && name.chars().all(fits)).then(|| Self(Some(name.to_owned())))
    }
}

impl<'de> Deserialize<'de> for EndpointName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "letters, digits and -._~/, such as readyz", Self::parse)
    }
}

/// What a certificate can be for: a DNS name or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateName(pub String);

impl CertificateName {
    fn parse(text: &str) -> Option<Self> {
        ServerName::try_from(text).ok().map(|_| Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for CertificateName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(
            deserializer,
            "a DNS name or an IP address, such as webhook.example.com",
            Self::parse,
        )
    }
}

/// A length of time as Go writes it: `15s`, `1m30s`, `1.5h`, `0`; not negative, whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

impl GoDuration {
    fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest == "0" {
            return Some(Self(Duration::ZERO));
        }
        let mut total = Duration::ZERO;
        loop {
            let (number, tail) = split_before(rest, |c| !c.is_ascii_digit() && c != '.');
            let (unit, tail) = split_before(tail, |c| c.is_ascii_digit() || c == '.');
            total = total.checked_add(amount(number, unit)?)?;
            if tail.is_empty() {
                // Go counts nanoseconds in an `int64`.
                return (total.as_nanos() <= i64::MAX.unsigned_abs().into()).then_some(Self(total));
            }
            rest = tail;
        }
    }
}

/// Splits before the first character that `ends` accepts.
fn split_before(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at_checked(text.find(ends).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// A decimal number of a unit, cut off to whole nanoseconds.
fn amount(number: &str, unit: &str) -> Option<Duration> {
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut total =
        if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.checked_mul(nanos)? };
    let mut place = nanos;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(place.checked_mul(digit.to_digit(10)?.into())?)?;
    }
    Some(Duration::from_nanos(total))
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "a length of time such as 15s or 1m30s", Self::parse)
    }
}

/// A string that `parse` understands; `expected` says in words what that is.
fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(ParsedVisitor { expected, parse })
}

struct ParsedVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for ParsedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// A section: named fields, never a list of their values. `null` is as if it were absent.
pub(super) fn section<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(SectionVisitor(PhantomData))
}

struct SectionVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SectionVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section of named fields")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_what_go_takes_it_for() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("+5s", 5_000_000_000),
            ("15s", 15_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h1m1s1ms1us1ns", 3_661_001_001_001),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3µs", 3_000),
            ("0.9ns", 0),
            ("9223372036854775807ns", i64::MAX.unsigned_abs()),
        ] {
            let expected = Some(GoDuration(Duration::from_nanos(nanos)));
            assert_eq!(GoDuration::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_none() {
        let too_long = ["9223372036854775808ns", "3000000h", "99999999999999999999s"];
        let no_numbers = ["", "+", "s", ".s", "1", "15", "1s5", "-1s", "1 s", "1.2.3s", "1d", "١s"];
        for text in too_long.into_iter().chain(no_numbers) {
            assert_eq!(GoDuration::parse(text), None, "{text}");
        }
    }
}
