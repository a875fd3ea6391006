//! Logging: one line an event, to stderr.
//!
//! Lines are JSON objects for collectors, or text for people. The level is that of this project's own
//! crates; libraries are kept at `info`, or at `debug` when everything is to be seen, because what they
//! say below that is about bytes and not about jobs.

use std::io;

use tracing::{Dispatch, dispatcher::SetGlobalDefaultError, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, filter::Targets, fmt, fmt::MakeWriter, layer::SubscriberExt, registry,
};

/// What a log line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A JSON object with the event's fields beside `timestamp` (RFC 3339, UTC), `level`, `target` and
    /// `message`.
    #[default]
    Json,
    /// For people; in colours if stderr is a terminal.
    Text,
}

/// How to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a log line looks like; JSON by default.
    pub format: Format,
    /// The least important level that is written; `info` by default.
    pub level: LevelFilter,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: Format::default(), level: LevelFilter::INFO }
    }
}

/// Starts logging to stderr, for the whole process. A line that cannot be written is lost.
///
/// # Errors
///
/// If logging has been started before.
pub fn init(options: Options) -> Result<(), SetGlobalDefaultError> {
    let colours = io::IsTerminal::is_terminal(&io::stderr());
    tracing::dispatcher::set_global_default(dispatch(options, io::stderr, colours))
}

fn dispatch<W>(options: Options, writer: W, colours: bool) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Left to itself, the layer reports a failed write to stderr, and panics if that fails too.
    let lines = fmt::layer().log_internal_errors(false).with_writer(writer);
    let lines = match options.format {
        Format::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
        Format::Text => lines.with_ansi(colours).boxed(),
    };
    Dispatch::new(registry().with(lines.with_filter(filter(options.level))))
}

fn filter(level: LevelFilter) -> Targets {
    let libraries =
        if level == LevelFilter::TRACE { LevelFilter::DEBUG } else { LevelFilter::INFO };
    // Every request, connection and watch that fails, which we say once and in better words.
    let failures = if level == LevelFilter::TRACE { level } else { LevelFilter::OFF };
    Targets::new()
        .with_default(level.min(libraries))
        .with_target("kube_client::client", failures)
        .with_target("kube_runtime::watcher", failures)
        .with_target("trainjob", level)
}

#[cfg(test)]
mod tests {
    use std::{io::Seek, sync::Arc};

    use k8s_openapi::jiff::Timestamp;
    use serde_json::Value;
    use tracing::{debug, dispatcher::with_default, info, info_span, trace};

    use super::*;

    /// What `log` writes.
    fn written(format: Format, level: LevelFilter, log: impl FnOnce()) -> String {
        let file = Arc::new(tempfile::tempfile().unwrap());
        with_default(&dispatch(Options { format, level }, Arc::clone(&file), false), log);
        file.as_ref().rewind().unwrap();
        io::read_to_string(file.as_ref()).unwrap()
    }

    #[test]
    fn a_line_is_an_object_with_the_fields_of_its_event_and_a_time_in_utc() {
        let lines = written(Format::Json, LevelFilter::INFO, || {
            let _span = info_span!("reconcile", job = "ns/j").entered();
            info!(lane = "stop", count = 3, "two\nlines");
        });
        assert_eq!(lines.lines().count(), 1, "{lines}");
        let line: Value = serde_json::from_str(&lines).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "two\nlines");
        assert_eq!((&line["lane"], &line["count"]), (&"stop".into(), &3.into()));
        assert_eq!(line["span"]["job"], "ns/j");
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.parse::<Timestamp>().is_ok() && time.ends_with('Z'), "{time}");
    }

    #[test]
    fn text_is_for_people() {
        let line = written(Format::Text, LevelFilter::INFO, || info!(lane = "stop", "deleted"));
        assert!(line.ends_with("deleted lane=\"stop\"\n"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }

    #[test]
    fn the_level_is_that_of_this_project_and_libraries_say_less() {
        for (level, expected) in [
            (LevelFilter::ERROR, ""),
            (LevelFilter::INFO, "own-info library-info "),
            (LevelFilter::DEBUG, "own-info own-debug library-info "),
            (LevelFilter::TRACE, "own-info own-debug own-trace library-info library-debug "),
        ] {
            let lines = written(Format::Json, level, || {
                info!("own-info");
                debug!("own-debug");
                trace!("own-trace");
                info!(target: "kube_client", "library-info");
                debug!(target: "kube_client", "library-debug");
                trace!(target: "kube_client", "library-trace");
            });
            let messages = lines.lines().map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                format!("{} ", line["message"].as_str().unwrap())
            });
            assert_eq!(messages.collect::<String>(), expected, "{level}");
        }
    }
}
