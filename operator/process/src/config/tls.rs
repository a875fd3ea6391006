//! The section `tls`: versions, cipher suites and protocols.
//!
//! What is too old to be spoken, or unknown, is warned of and left out; if nothing is left then of TLS 1.2,
//! where that is to be spoken, or of the protocols, that is an error.

use rustls::{
    ProtocolVersion, SupportedCipherSuite,
    crypto::ring::{ALL_CIPHER_SUITES, DEFAULT_CIPHER_SUITES},
};

use super::{error::Problem, file};

/// The protocols above TLS.
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];

/// How to speak TLS.
#[derive(Debug, Clone, PartialEq)]
pub struct Tls {
    /// The lowest version, 1.2 or 1.3.
    pub min_version: ProtocolVersion,
    /// The cipher suites, at least one.
    pub suites: Vec<SupportedCipherSuite>,
    /// The protocols above it, in order of preference, at least one.
    pub protocols: Vec<&'static str>,
}

impl Default for Tls {
    /// What is spoken where no section says otherwise.
    fn default() -> Self {
        resolve(&file::Tls::default()).0
    }
}

/// What the section says, and what to tell whoever runs the process.
pub(super) fn resolve(section: &file::Tls) -> (Tls, Vec<String>) {
    let mut warnings = Vec::new();
    let min_version = min_version(section, &mut warnings);
    let suites = suites(section, min_version, &mut warnings);
    let protocols = protocols(section, &mut warnings);
    (Tls { min_version, suites, protocols }, warnings)
}

/// Refuses a section that leaves nothing to speak.
pub(super) fn check(section: &file::Tls) -> Result<(), Problem> {
    let (tls, _) = resolve(section);
    let problem = |field: &str, known: Vec<String>| {
        let message = format!("none of them is known, expected some of {}", known.join(", "));
        Err(Problem::new(format!("tls.{field}"), message))
    };
    let speaks_12 = tls.suites.iter().any(|suite| suite.tls13().is_none());
    if tls.min_version == ProtocolVersion::TLSv1_2 && !speaks_12 {
        let of_12 = ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_none());
        return problem("cipherSuites", of_12.map(|suite| name(*suite)).collect());
    }
    if tls.protocols.is_empty() {
        return problem("nextProtos", PROTOCOLS.map(str::to_owned).into());
    }
    Ok(())
}

fn min_version(section: &file::Tls, warnings: &mut Vec<String>) -> ProtocolVersion {
    match section.min_version.as_str() {
        "1.2" => ProtocolVersion::TLSv1_2,
        "1.3" => ProtocolVersion::TLSv1_3,
        old @ ("1.0" | "1.1") => {
            warnings.push(format!("tls.minVersion: {old} is not spoken any more, using 1.2"));
            ProtocolVersion::TLSv1_2
        }
        unknown => {
            let advice = "expected one of 1.0, 1.1, 1.2, 1.3; ignored";
            warnings.push(format!("tls.minVersion: unknown version {unknown:?}, {advice}"));
            ProtocolVersion::TLSv1_2
        }
    }
}

/// As in Go, the section chooses among the suites of TLS 1.2; those of 1.3 are always there.
fn suites(
    section: &file::Tls,
    min_version: ProtocolVersion,
    warnings: &mut Vec<String>,
) -> Vec<SupportedCipherSuite> {
    let chosen = &section.cipher_suites;
    for name in chosen.iter().filter(|wanted| !is_known(wanted)) {
        warnings.push(format!("tls.cipherSuites: {name:?} is unknown or insecure, ignored"));
    }
    let is_wanted = |suite: &SupportedCipherSuite| match suite {
        SupportedCipherSuite::Tls13(_) => true,
        SupportedCipherSuite::Tls12(_) => {
            let is_chosen = chosen.is_empty() || chosen.contains(&name(*suite));
            min_version == ProtocolVersion::TLSv1_2 && is_chosen
        }
    };
    DEFAULT_CIPHER_SUITES.iter().copied().filter(is_wanted).collect()
}

fn is_known(wanted: &str) -> bool {
    ALL_CIPHER_SUITES.iter().any(|suite| name(*suite) == wanted)
}

/// The name of a suite as IANA lists it.
fn name(suite: SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    // To tell versions apart, the library's names of the suites of TLS 1.3 have it in their first word.
    name.replacen("TLS13_", "TLS_", 1)
}

fn protocols(section: &file::Tls, warnings: &mut Vec<String>) -> Vec<&'static str> {
    let mut protocols = Vec::new();
    for name in &section.next_protos {
        match PROTOCOLS.into_iter().find(|known| known == name) {
            Some(known) if !protocols.contains(&known) => protocols.push(known),
            Some(_) => {}
            None => warnings.push(format!("tls.nextProtos: unknown protocol {name:?}, ignored")),
        }
    }
    protocols
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(
        version: Option<&str>,
        suites: Option<&[&str]>,
        protos: Option<&[&str]>,
    ) -> file::Tls {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let default = file::Tls::default();
        file::Tls {
            min_version: version.map_or(default.min_version, str::to_owned),
            cipher_suites: suites.map_or(default.cipher_suites, owned),
            next_protos: protos.map_or(default.next_protos, owned),
        }
    }

    fn names(tls: &Tls) -> Vec<String> {
        tls.suites.iter().map(|suite| name(*suite)).collect()
    }

    const OLD: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

    #[test]
    fn without_a_section_both_versions_are_spoken() {
        let (tls, warnings) = resolve(&file::Tls::default());
        assert_eq!(tls.min_version, ProtocolVersion::TLSv1_2);
        assert_eq!(tls.protocols, ["h2", "http/1.1"]);
        assert!(names(&tls).contains(&"TLS_AES_128_GCM_SHA256".to_owned()), "{tls:?}");
        assert!(names(&tls).contains(&OLD.to_owned()), "{tls:?}");
        assert_eq!(warnings, [""; 0]);
    }

    #[test]
    fn suites_of_the_older_version_are_chosen_and_those_of_the_newer_stay() {
        let (tls, warnings) = resolve(&section(None, Some(&[OLD, "TLS_RSA_WITH_RC4"]), None));
        let of_tls_12: Vec<_> =
            names(&tls).into_iter().filter(|it| it.contains("_WITH_")).collect();
        assert_eq!(of_tls_12, [OLD]);
        assert_eq!(tls.suites.len(), 4);
        assert_eq!(
            warnings,
            ["tls.cipherSuites: \"TLS_RSA_WITH_RC4\" is unknown or insecure, ignored"]
        );
        let (tls, _) = resolve(&section(Some("1.3"), Some(&[OLD]), None));
        assert_eq!((tls.min_version, tls.suites.len()), (ProtocolVersion::TLSv1_3, 3));
    }

    #[test]
    fn versions_that_are_too_old_or_unknown_are_warned_of() {
        for (version, warned) in [("1.0", true), ("1.1", true), ("1.2", false), ("2", true)] {
            let (tls, warnings) = resolve(&section(Some(version), None, None));
            assert_eq!(tls.min_version, ProtocolVersion::TLSv1_2, "{version}");
            assert_eq!(!warnings.is_empty(), warned, "{version}: {warnings:?}");
        }
    }

    #[test]
    fn protocols_are_chosen_and_something_is_left() {
        let (tls, warnings) = resolve(&section(None, None, Some(&["http/1.1", "spdy/3"])));
        assert_eq!(tls.protocols, ["http/1.1"]);
        assert_eq!(warnings, ["tls.nextProtos: unknown protocol \"spdy/3\", ignored"]);
        let nothing = section(None, None, Some(&["spdy/3"]));
        let problem = check(&nothing).unwrap_err().to_string();
        let expected = "tls.nextProtos: none of them is known, expected some of h2, http/1.1";
        assert_eq!(problem, expected);
    }
}
