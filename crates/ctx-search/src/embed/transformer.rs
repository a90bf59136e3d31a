//! Embeddings by a BERT-type model from a folder on this machine, in pure Rust.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use ctx_core::text::head;
use ctx_core::{Embedder, Error, ErrorKind, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use super::LONGEST;
use crate::blocking::spawn_blocking;

/// The number of tokens read from a text if the folder does not specify it.
const MAX_TOKENS: usize = 256;

/// A smaller limit is invalid: two tokens mark the beginning and the end of the text.
const FEWEST_TOKENS: usize = 8;

/// The number of texts per batch.
const BATCH: usize = 16;

/// The folder's limits for the length of texts (`sentence_bert_config.json`, optional).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelLimits {
    max_seq_length: Option<usize>,
}

/// A model such as all-MiniLM-L6-v2: the mean over its tokens, normalised.
///
/// # Notes
///
/// Computing a vector keeps a core busy for some milliseconds; [`Embedder::embed`] does that on a
/// separate thread.
pub struct TransformerEmbedder {
    name: String,
    dimensions: usize,
    bert: Arc<Bert>,
}

struct Bert {
    name: String,
    dimensions: usize,
    model: BertModel,
    tokenizer: Tokenizer,
}

ctx_core::partial_debug!(TransformerEmbedder, it, name = it.name);

impl TransformerEmbedder {
    /// Opens the model in `folder`: `config.json`, `tokenizer.json` and `model.safetensors`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if a file cannot be read, [`ErrorKind::Corrupt`] if it is invalid; each
    /// names the file.
    pub fn open(folder: &Path) -> Result<Self> {
        let file = |name: &'static str| File { folder, name };
        let (config, words, weights) =
            (file("config.json"), file("tokenizer.json"), file("model.safetensors"));
        let parsed: Config = serde_json::from_slice(&config.read()?).map_err(|e| config.bad(e))?;
        let heads = parsed.num_attention_heads;
        if heads == 0 || parsed.hidden_size == 0 || !parsed.hidden_size.is_multiple_of(heads) {
            return Err(config.bad("hidden_size is not a multiple of num_attention_heads"));
        }
        let limits = ctx_disk::read(folder.join("sentence_bert_config.json")).unwrap_or_default();
        let limits: ModelLimits = serde_json::from_slice(&limits).unwrap_or_default();
        let most = limits.max_seq_length.unwrap_or(MAX_TOKENS).min(parsed.max_position_embeddings);
        if most < FEWEST_TOKENS {
            return Err(config.bad("max_position_embeddings is too small"));
        }
        let vocabulary = words.read()?;
        let mut tokenizer = Tokenizer::from_bytes(&vocabulary).map_err(|e| words.bad(e))?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams {
                max_length: most,
                ..TruncationParams::default()
            }))
            .map_err(|e| words.bad(e))?;
        let bytes = weights.read()?;
        let name = format!("transformer:{}", fingerprint(&bytes, &vocabulary, most));
        let vars = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu);
        let vars = vars.map_err(|e| weights.bad(e))?;
        let model = BertModel::load(vars, &parsed).map_err(|e| weights.bad(e))?;
        let dimensions = parsed.hidden_size;
        let bert = Arc::new(Bert { name: name.clone(), dimensions, model, tokenizer });
        Ok(Self { name, dimensions, bert })
    }
}

impl Bert {
    fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        let encoded = self.tokenizer.encode_fast(head(text, LONGEST), true);
        Ok(encoded.map_err(|e| self.failed(e))?.get_ids().to_vec())
    }

    /// Computes the vectors of tokenised texts.
    fn vectors(&self, texts: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let longest = texts.iter().map(|ids| ids.len()).max().unwrap_or_default().max(1);
        let mut ids = Vec::with_capacity(texts.len() * longest);
        let mut mask = Vec::with_capacity(ids.capacity());
        for text in texts {
            let padding = longest - text.len();
            ids.extend(text.iter().copied().chain(std::iter::repeat_n(0, padding)));
            mask.extend((0..longest).map(|at| if at < text.len() { 1f32 } else { 0.0 }));
        }
        let shape = (texts.len(), longest);
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let states = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let wide = mask.unsqueeze(2)?;
        let sum = states.broadcast_mul(&wide)?.sum(1)?;
        let count = mask.sum_keepdim(1)?.maximum(1f32)?;
        let mean = sum.broadcast_div(&count)?;
        let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?;
        mean.broadcast_div(&length)?.to_vec2()
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let tokens: Vec<Vec<u32>> =
            texts.iter().map(|text| self.tokens(text)).collect::<Result<_>>()?;
        // Texts of similar length share a batch: a short one beside a long one costs as much as the
        // long one.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&n| tokens[n].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in order.chunks(BATCH) {
            let ids: Vec<&[u32]> = batch.iter().map(|&n| tokens[n].as_slice()).collect();
            let made = self.vectors(&ids).map_err(|e| self.failed(e))?;
            for (&n, vector) in batch.iter().zip(made) {
                if vector.len() != self.dimensions || !vector.iter().all(|x| x.is_finite()) {
                    return Err(self.failed("a vector contains values that are not finite"));
                }
                vectors[n] = vector;
            }
        }
        Ok(vectors)
    }

    fn failed(&self, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(ErrorKind::Upstream, "the model failed to compute a vector")
            .with("embedder", &self.name)
            .hint("check that the folder holds a BERT-type model, such as all-MiniLM-L6-v2")
            .source(why)
    }
}

#[async_trait]
impl Embedder for TransformerEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let (bert, texts) = (self.bert.clone(), texts.to_vec());
        spawn_blocking("ctx-memory-bert", move || bert.embed(&texts)).await?
    }
}

/// A file of the model.
#[derive(Clone, Copy)]
struct File<'a> {
    folder: &'a Path,
    name: &'static str,
}

impl File<'_> {
    fn read(self) -> Result<Vec<u8>> {
        ctx_disk::read(self.folder.join(self.name)).map_err(|e| {
            Error::new(ErrorKind::Io, "cannot read the embedding model")
                .with("path", self.folder.join(self.name).display())
                .hint("a model is a folder with config.json, tokenizer.json and model.safetensors")
                .source(e)
        })
    }

    fn bad(self, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(ErrorKind::Corrupt, "the embedding model is damaged or not a BERT-type model")
            .with("path", self.folder.join(self.name).display())
            .hint("all-MiniLM-L6-v2 is known to work")
            .source(why)
    }
}

/// Identifies a model by its vocabulary, its token limit, and the size, beginning and end of its
/// weights. Hashing all weights would take a quarter of a second at each start.
fn fingerprint(weights: &[u8], words: &[u8], most: usize) -> String {
    const ENDS: usize = 1 << 20;
    let mut hash = Sha256::new();
    for number in [weights.len(), words.len(), most] {
        hash.update((number as u64).to_le_bytes());
    }
    hash.update(&weights[..weights.len().min(ENDS)]);
    hash.update(&weights[weights.len().saturating_sub(ENDS)..]);
    hash.update(words);
    hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(files: &[(&str, &str)]) -> Error {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        TransformerEmbedder::open(folder.path()).unwrap_err()
    }

    const CONFIG: &str = r#"{"vocab_size": 3, "hidden_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": HEADS, "intermediate_size": 4, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0, "max_position_embeddings": 8, "type_vocab_size": 2,
        "initializer_range": 0.1, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "position_embedding_type": "absolute", "use_cache": false, "model_type": "bert"}"#;

    #[test]
    fn weights_vocabulary_and_length_identify_a_model() {
        let name = fingerprint(b"weights", b"words", 256);
        assert_eq!(name, fingerprint(b"weights", b"words", 256));
        let others = [(&b"weight"[..], &b"swords"[..], 256), (b"weights", b"word", 256)];
        for (weights, words, most) in
            others.into_iter().chain([(&b"weights"[..], &b"words"[..], 128)])
        {
            assert_ne!(name, fingerprint(weights, words, most));
        }
    }

    #[test]
    fn a_folder_without_a_model_is_an_error_that_names_the_file() {
        let error = refused(&[]);
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("config.json"), "{error}");
    }

    #[test]
    fn a_model_that_is_damaged_is_an_error_that_names_the_file() {
        for heads in ["0", "3"] {
            let config = CONFIG.replace("HEADS", heads);
            let error = refused(&[("config.json", &config)]);
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("config.json"), "{error}");
        }
        let config = CONFIG.replace("HEADS", "2");
        let error = refused(&[("config.json", &config), ("tokenizer.json", "{}")]);
        assert!(error.to_string().contains("tokenizer.json"), "{error}");
        let words = r#"{"version": "1.0", "model": {"type": "WordPiece", "unk_token": "u",
            "continuing_subword_prefix": "p", "max_input_chars_per_word": 9, "vocab": {"u": 0}}}"#;
        let error = refused(&[
            ("config.json", &config),
            ("tokenizer.json", words),
            ("model.safetensors", "no weights"),
        ]);
        assert!(error.to_string().contains("model.safetensors"), "{error}");
    }
}
