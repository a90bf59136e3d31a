//! Creates the embedding model from the configuration.

use std::path::Path;
use std::sync::Arc;

use ctx_config::{Config, Models};
use ctx_core::{Embedder, Error, ErrorKind, Result};
use ctx_memory::EmbeddingModel;
use ctx_model::{Client, TokioTimer, connect_embedder};
use ctx_search::VectorModel;

use super::providers::providers;

/// Returns the model of `agents.defaults.memoryContext.embeddingModel` with a timer for its
/// timeouts; `None` for `hash`, which needs no model. A server is not contacted yet: a failure
/// shows at the first request for a vector.
///
/// # Errors
///
/// A missing or unknown source, a folder without a valid model, or a build that cannot run local
/// models. The host reports it and continues with `hash`.
pub fn vector_model(config: &Config, memory: &ctx_memory::Config) -> Result<Option<VectorModel>> {
    let source = memory.embedding_source.as_deref().map(str::trim).filter(|s| !s.is_empty());
    let embedder: Arc<dyn Embedder> = match memory.embedding_model {
        EmbeddingModel::Hash => return Ok(None),
        EmbeddingModel::Transformer => transformer(Path::new(named(source, FOLDER)?))?,
        EmbeddingModel::Http => {
            let dimensions = memory.embedding_dimensions.map(|n| n as usize);
            http_embedder(config, named(source, MODEL)?, dimensions)?
        }
    };
    Ok(Some(VectorModel::new(embedder, Arc::new(TokioTimer::default()))))
}

const FOLDER: &str = "set it to the folder of the model: config.json, tokenizer.json and \
                      model.safetensors";
const MODEL: &str = "set it to a model, such as ollama/nomic-embed-text or \
                     openai/text-embedding-3-small";

fn named<'a>(source: Option<&'a str>, hint: &str) -> Result<&'a str> {
    source.ok_or_else(|| {
        Error::new(ErrorKind::Config, "missing source of the embedding model")
            .with("key", "agents.defaults.memoryContext.embeddingSource")
            .hint(hint)
    })
}

/// Connects a model on a server by its name: `provider/name`, as in `models.providers`.
fn http_embedder(
    config: &Config,
    name: &str,
    dimensions: Option<usize>,
) -> Result<Arc<dyn Embedder>> {
    let models: Models = config.section()?;
    let providers = providers(&models)?;
    let client = Arc::new(Client::default());
    let connected = connect_embedder(name, dimensions, &providers, &client);
    let embedder = connected.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput if dimensions.is_none() => {
            error.hint("set agents.defaults.memoryContext.embeddingDimensions")
        }
        _ => error,
    })?;
    Ok(Arc::new(embedder))
}

#[cfg(feature = "transformer")]
fn transformer(folder: &Path) -> Result<Arc<dyn Embedder>> {
    Ok(Arc::new(ctx_search::TransformerEmbedder::open(&at_home(folder))?))
}

/// Expands `~` to the home folder, as in other paths of the configuration.
#[cfg(feature = "transformer")]
fn at_home(folder: &Path) -> std::path::PathBuf {
    match (folder.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => folder.to_owned(),
    }
}

#[cfg(not(feature = "transformer"))]
fn transformer(_: &Path) -> Result<Arc<dyn Embedder>> {
    Err(Error::new(ErrorKind::Capability, "this build of ctx cannot run an embedding model")
        .with("key", "agents.defaults.memoryContext.embeddingModel")
        .hint("build it with `--features transformer`, or use `http` or `hash`"))
}
