//! `windlass image`: an OCI image of the operator, without Docker.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::error::{Error, Result, at};
use crate::image::{self, Image};
use crate::program::Program;
use crate::progress::Step;

/// Build an image of the operator, or load one into the embedded cluster
#[derive(Subcommand)]
pub(crate) enum Images {
    Build(Build),
    Load(Load),
}

impl Images {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Build(build) => build.run(),
            Self::Load(load) => load.run(),
        }
    }
}

/// Build an OCI image of the operator's program, without Docker
#[derive(Args)]
#[command(after_help = "Examples:
  windlass image build --tag my-operator:1.0.0
  windlass image build --tag registry.example.com/my-operator:1.0.0 -o image.tar
  skopeo copy oci-archive:image.tar docker://registry.example.com/my-operator:1.0.0")]
pub(crate) struct Build {
    /// The image's name and tag; `<operator>:latest` unless given
    #[arg(long, short)]
    tag: Option<String>,
    /// The archive to write; `dist/<operator>.tar` unless given
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Build {
    fn run(self) -> Result<()> {
        let program = Program::build(Path::new("."), true)?;
        let name = &program.project.project_name;
        let tag = image::full_name(&self.tag.unwrap_or_else(|| name.clone()))?;
        let out = self
            .out
            .unwrap_or_else(|| program.root.join("dist").join(format!("{name}.tar")));
        let step = Step::start(format!("writing {}", out.display()));
        let image = Image::of_program(&program.path, name, &tag)?;
        image.write(&out)?;
        drop(step);
        println!(
            "{tag} is in {} ({} MB, sha256:{}).",
            out.display(),
            image.megabytes(),
            &image.digest()[..12]
        );
        println!(
            "Next: windlass image load {}, or copy it to a registry",
            out.display()
        );
        Ok(())
    }
}

/// Load an image into the embedded cluster
#[derive(Args)]
#[command(after_help = "Example:
  windlass image load dist/my-operator.tar")]
pub(crate) struct Load {
    /// An OCI archive, as `windlass image build` writes them
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    /// The cluster's data folder
    #[arg(long, default_value = ".windlass")]
    data_dir: PathBuf,
}

impl Load {
    fn run(self) -> Result<()> {
        if !self.data_dir.is_dir() {
            return Err(Error::NotRunning(self.data_dir));
        }
        let tag = image::tag_of(&self.archive)?;
        let folder = self.data_dir.join("images");
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        let to = folder.join(image::file_name(&tag));
        let unfinished = to.with_extension("new");
        std::fs::copy(&self.archive, &unfinished).map_err(at(&self.archive))?;
        std::fs::rename(&unfinished, &to).map_err(at(&to))?;
        println!("{tag} is loaded; pods that name it run it.");
        Ok(())
    }
}
