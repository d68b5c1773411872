"""What the operator has to know of images in registries: names, credentials, documents. Pure."""
