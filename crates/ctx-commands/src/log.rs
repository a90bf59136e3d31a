//! The log of this run, filtered by `RUST_LOG`: on stderr, or in a file.

use std::env;

use ctx_core::{Error, ErrorKind};
use ctx_terminal::out::Out;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, registry};

use crate::args::Global;

/// Default filter of a log file, if `RUST_LOG` is unset.
const USUAL: &str = "ctx=info";

/// Subscribers to spans and events.
pub(crate) type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

/// Creates the log writers, if requested.
///
/// # Errors
///
/// If the log file cannot be written.
pub(crate) fn layers(global: &Global, out: &Out) -> anyhow::Result<Layers> {
    let asked = env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let usual = global.log_file.as_ref().map(|_| USUAL.to_owned());
    let Some(asked) = asked.or(usual) else { return Ok(Layers::new()) };
    let Ok(filter) = asked.parse::<Targets>() else {
        out.warn(format!("RUST_LOG ignored: {asked:?} is neither a level nor TARGET=LEVEL"));
        return Ok(Layers::new());
    };
    let writer = match &global.log_file {
        None => BoxMakeWriter::new(std::io::stderr),
        Some(path) => {
            let file =
                ctx_disk::private().append(true).create(true).open(path).map_err(|error| {
                    Error::new(ErrorKind::Io, "cannot write the log file")
                        .with("path", path.display())
                        .hint("name a file in a folder that exists and that you may write to")
                        .source(error)
                })?;
            BoxMakeWriter::new(std::sync::Arc::new(file))
        }
    };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    Ok(vec![layer.with_filter(filter).boxed()])
}

/// Installs the layers for the whole process, if there are any.
pub(crate) fn begin(layers: Layers) -> anyhow::Result<()> {
    if layers.is_empty() { Ok(()) } else { Ok(registry().with(layers).try_init()?) }
}
