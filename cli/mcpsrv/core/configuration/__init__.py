"""From the configuration of a desktop client to manifests: parsing, secrets, paths, images, names."""
