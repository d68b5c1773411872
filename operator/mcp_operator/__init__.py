"""The operator: reconciles `MCPServer` resources into sandboxed pods and tells the truth about them."""
