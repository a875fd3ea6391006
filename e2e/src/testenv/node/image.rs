//! Images without a builder or a registry: a folder becomes the one layer of an image, in a file that containerd takes.

use std::env::consts::ARCH;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use ring::digest::{Context as Digest, SHA256};
use serde_json::{Value, json};

use super::packages::{Packages, run};

/// An image with a shell and not much more. What it does by itself is to wait until it is told to end.
pub const SMALL: &str = "localhost/small:local";

/// What the shell of that image can do by name.
const APPLETS: [&str; 9] = ["cat", "dd", "echo", "nc", "nslookup", "sh", "sleep", "tail", "true"];
/// The shell would not react to the signal while it waits for a command in the foreground.
const WAIT: &str = "trap 'exit 0' TERM INT; sleep 2147483647 & wait";

/// What is in an image, and what it does by itself.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// Its name with a tag that is not `latest`: what is there is not pulled then.
    pub name: &'a str,
    /// The folder that becomes `/`.
    pub root: &'a Path,
    /// The command line of a container that is given none.
    pub command: &'a [&'a str],
    /// The environment variables, as `NAME=VALUE`.
    pub env: &'a [&'a str],
}

/// Writes the small image to a file in `folder`, and returns that.
pub fn small(packages: &Packages, folder: &Path) -> Result<PathBuf> {
    let root = folder.join("small");
    let programs = root.join("bin");
    fs::create_dir_all(&programs)?;
    fs::create_dir(root.join("tmp"))?;
    fs::copy(packages.folder().join("bin/busybox"), programs.join("busybox"))
        .context("no busybox in the packages")?;
    for applet in APPLETS {
        symlink("busybox", programs.join(applet))?;
    }
    let image =
        Image { name: SMALL, root: &root, command: &["sh", "-c", WAIT], env: &["PATH=/bin"] };
    write(&image, &folder.join("small.tar"))
}

/// Writes an image to `file`, as an OCI layout in a tar archive, and returns the path of that. The same content gives
/// the same image.
pub fn write(image: &Image<'_>, file: &Path) -> Result<PathBuf> {
    let parent = file.parent().context("a file in no folder")?;
    let layout = tempfile::Builder::new().prefix("image-").tempdir_in(parent)?;
    let blobs = layout.path().join("blobs/sha256");
    fs::create_dir_all(&blobs)?;

    let layer = layout.path().join("layer");
    archive(image.root, &layer)?;
    let (digest, size) = (sha256(File::open(&layer)?)?, fs::metadata(&layer)?.len());
    fs::rename(&layer, blobs.join(&digest))?;
    let of = |kind: &str| format!("application/vnd.oci.image.{kind}");
    let described = |kind: &str, digest: &str, size: u64| json!({"mediaType": of(kind), "digest": format!("sha256:{digest}"), "size": size});
    let put = |kind: &str, content: &Value| -> Result<Value> {
        let text = content.to_string();
        let digest = sha256(text.as_bytes())?;
        fs::write(blobs.join(&digest), &text)?;
        Ok(described(kind, &digest, u64::try_from(text.len())?))
    };

    let config = put(
        "config.v1+json",
        &json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {"Cmd": image.command, "Env": image.env},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        }),
    )?;
    let layer = described("layer.v1.tar", &digest, size);
    let kind = "manifest.v1+json";
    let manifest =
        json!({"schemaVersion": 2, "mediaType": of(kind), "config": config, "layers": [layer]});
    let mut entry = put(kind, &manifest)?;
    let name = json!({"io.containerd.image.name": image.name});
    entry.as_object_mut().context("no object")?.insert("annotations".to_owned(), name);
    let index = json!({"schemaVersion": 2, "mediaType": of("index.v1+json"), "manifests": [entry]});
    fs::write(layout.path().join("index.json"), index.to_string())?;
    let version = json!({"imageLayoutVersion": "1.0.0"});
    fs::write(layout.path().join("oci-layout"), version.to_string())?;
    archive(layout.path(), file)?;
    Ok(file.to_owned())
}

/// Everything in a folder, as nobody's and of no time.
fn archive(folder: &Path, file: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command.args(["--create", "--format=pax", "--sort=name", "--mtime=@0"]);
    command.args(["--owner=0", "--group=0", "--numeric-owner"]);
    // Otherwise it tells when it was made, and by which process.
    command.arg("--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime");
    command.arg("--file").arg(file).arg("--directory").arg(folder).arg(".");
    run(&mut command)
}

fn sha256(mut content: impl io::Read) -> io::Result<String> {
    let mut digest = Digest::new(&SHA256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = content.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(buffer.get(..count).unwrap_or_default());
    }
    let mut text = String::new();
    for byte in digest.finish().as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// As Go calls it.
fn architecture() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_content() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&b"abc"[..]).unwrap(), expected);
    }

    #[test]
    fn the_same_folder_gives_the_same_image_and_every_blob_is_called_by_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/c"), "content").unwrap();
        let image = Image { name: "localhost/a:b", root: &root, command: &["c"], env: &["D=e"] };
        let files = ["one.tar", "two.tar"].map(|name| folder.path().join(name));
        let [one, two] = files.map(|file| fs::read(write(&image, &file).unwrap()).unwrap());
        assert_eq!(one, two);

        let unpacked = folder.path().join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        let mut untar = Command::new("tar");
        untar.arg("--extract").arg("--file").arg(folder.path().join("one.tar"));
        run(untar.arg("--directory").arg(&unpacked)).unwrap();
        let blobs = fs::read_dir(unpacked.join("blobs/sha256")).unwrap();
        let names: Vec<_> = blobs.map(|entry| entry.unwrap()).collect();
        assert_eq!(names.len(), 3);
        for entry in names {
            let digest = sha256(File::open(entry.path()).unwrap()).unwrap();
            assert_eq!(entry.file_name().to_str(), Some(digest.as_str()));
        }
        let index = fs::read_to_string(unpacked.join("index.json")).unwrap();
        let index: Value = serde_json::from_str(&index).unwrap();
        let name = index.pointer("/manifests/0/annotations/io.containerd.image.name");
        assert_eq!(name, Some(&json!("localhost/a:b")));
    }
}
