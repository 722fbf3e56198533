"""The retail study: what do retrieval, reranking and reasoning each add to a shop's help desk?"""
